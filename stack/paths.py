"""Where everything of the local stack lies: below `<project>/.local/`, which `make clean` removes.

The only state is a small JSON file with the ports that were chosen, so that addresses stay the same.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from stack.atomic_write import write_whole


@dataclass(frozen=True)
class Project:
    """A checkout of Penstock and its folder for everything generated.

    The stack of a project `on_cluster` has Spark standalone and an object store, too.
    """

    root: Path
    local: Path
    on_cluster: bool = False

    @classmethod
    def here(cls) -> "Project":
        """Return the checkout that this package lies in; `PENSTOCK_LOCAL` moves its generated files."""
        root = Path(__file__).resolve().parents[1]
        return cls(root, Path(os.environ.get("PENSTOCK_LOCAL") or root / ".local").resolve())

    def clustered(self) -> "Project":
        """Return the same checkout with a cluster, and a folder of its own inside ours."""
        return replace(self, local=self.local / "cluster", on_cluster=True)

    @property
    def shared(self) -> Path:
        """Return the folder of what is slow to make and the same with and without a cluster."""
        return self.local.parent if self.on_cluster else self.local

    @property
    def servers(self) -> Path:
        """Return the folder of the two PostgreSQL servers."""
        return self.local / "postgres"

    @property
    def airflow_home(self) -> Path:
        """Return Airflow's home (its logs are in `logs/` there)."""
        return self.local / "airflow"

    @property
    def logs(self) -> Path:
        """Return the folder of the components' own logs."""
        return self.local / "logs"

    @property
    def sessions(self) -> Path:
        """Return the folder of the records of background programs."""
        return self.local / "sessions"

    @property
    def jars(self) -> Path:
        """Return the folder of the jars that Spark needs besides its own."""
        return self.shared / "jars"

    @property
    def jre(self) -> Path:
        """Return the JAVA_HOME made where the system has no Java that fits."""
        return self.shared / "jre"

    @property
    def compiled(self) -> Path:
        """Return the folder of the decoder's compiled code."""
        return self.shared / "numba"

    @property
    def spark_conf(self) -> Path:
        """Return the folder of spark-defaults.conf and log4j2.properties."""
        return self.local / "spark-conf"

    @property
    def warehouse(self) -> Path:
        """Return the folder of the lake's tables."""
        return self.local / "warehouse"

    @property
    def landing(self) -> Path:
        """Return the landing zone."""
        return self.local / "landing"

    @property
    def library(self) -> Path:
        """Return the zip that Spark gets by `--py-files`."""
        return self.local / "penstock.zip"

    @property
    def secrets(self) -> Path:
        """Return the file of the generated passwords (0600)."""
        return self.local / "secrets.json"

    @property
    def environment(self) -> Path:
        """Return the shell file that leads the command line to the running stack (0600)."""
        return self.local / "env.sh"

    @property
    def login(self) -> Path:
        """Return the file with the UI's user and password (0600), in Airflow's own format."""
        return self.local / "airflow-login.json"

    @property
    def state(self) -> Path:
        """Return the file of the chosen ports."""
        return self.local / "state.json"

    def read_ports(self) -> dict[str, int]:
        """Return the ports chosen earlier; none when nothing (or nothing legible) is remembered."""
        try:
            ports = json.loads(self.state.read_text())["ports"]
            return {str(name): int(port) for name, port in ports.items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}

    def write_ports(self, ports: Mapping[str, int]) -> None:
        """Remember the chosen ports."""
        write_whole(self.state, json.dumps({"ports": dict(ports)}, indent=2) + "\n")

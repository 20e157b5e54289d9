"""The local stack as one thing: the two servers, Airflow, and the environment that leads everything to them.

`Stack.load` only reads (and makes passwords the first time); `stack.lifecycle` brings it up and down.
"""

import os
import shlex
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from stack import ports
from stack.airflow import airflow_server as airflow
from stack.airflow import connections
from stack.airflow.rest_api import AirflowApi
from stack.atomic_write import write_private
from stack.background_process import Session
from stack.cluster import standalone as cluster
from stack.paths import Project
from stack.secrets import Secrets
from stack.servers import databases
from stack.servers.binaries import from_wheel
from stack.servers.postgres import Server
from stack.servers.postgres_user import Account, reachable_folder
from stack.spark import java, spark_conf

PREFERRED_PORTS = {"source": 5440, "control": 5441, "airflow": 8080}
SOURCE_SETTINGS = {
    "max_slot_wal_keep_size": "4GB",
    "max_prepared_transactions": "10",
    "shared_buffers": "256MB",
    "max_wal_size": "2GB",
}
CONTROL_SETTINGS = {"wal_level": "replica", "max_connections": "200", "shared_buffers": "128MB"}
SHELL_HEADER = """# Leads a shell to the local stack: `source .local/env.sh`, then `penstock --help`.
# Made by `make up`; it holds passwords, so only its owner can read it.
"""


@dataclass(frozen=True)
class Stack:
    """The parts of the local stack of one project, at the ports that were chosen for it."""

    project: Project
    ports: dict[str, int]
    secrets: Secrets

    @classmethod
    def load(cls, project: Project | None = None) -> "Stack":
        """Find the stack of a project (by default this checkout) as it was last brought up."""
        project = project or Project.here()
        preferred = PREFERRED_PORTS | (cluster.PREFERRED_PORTS if project.on_cluster else {})
        return cls(project, preferred | project.read_ports(), Secrets.load(project.secrets))

    @cached_property
    def source(self) -> Server:
        """Return the demo's source server."""
        return self._server("source", self.secrets.source_superuser, SOURCE_SETTINGS)

    @cached_property
    def control(self) -> Server:
        """Return the server of Airflow's metadata, the ledger and the lake's catalog."""
        return self._server("control", self.secrets.control_superuser, CONTROL_SETTINGS)

    @cached_property
    def airflow(self) -> airflow.Airflow:
        """Return Airflow's components."""
        url = f"http://{ports.LOOPBACK}:{self.ports['airflow']}"
        api = AirflowApi(url, airflow.USER, self.secrets.airflow_login)
        made = airflow.Airflow(self.project, self.environment(), self.process_environment(), api)
        api.require_alive = made.require_alive
        return made

    @cached_property
    def cluster(self) -> cluster.Cluster | None:
        """Return the cluster that the stack works on, if the project has one."""
        return cluster.Cluster(self.project, self.ports, self.secrets) if self.project.on_cluster else None

    @property
    def pipelines(self) -> Path:
        """Return the folder of the pipeline files."""
        return self.cluster.pipelines if self.cluster else self.project.root / "include" / "pipelines"

    @property
    def warehouse(self) -> str:
        """Return the folder or address of the lake's files."""
        return self.cluster.warehouse if self.cluster else str(self.project.warehouse)

    def store_options(self) -> dict[str, str]:
        """Return the options by which `penstock.landing` opens that place, without secrets; none for a folder."""
        return self.cluster.store.options() if self.cluster else {}

    def session(self, name: str) -> Session:
        """Return a background session of this name; `stop_sessions` and `make down` end it."""
        return Session.of(self.project, name)

    def sessions(self) -> list[Session]:
        """List the background sessions that were started and not stopped."""
        return [self.session(record.stem) for record in sorted(self.project.sessions.glob("*.json"))]

    def source_dsn(self, role: str = databases.SHOP_OWNER) -> str:
        """Return the shop database's connection string for one of its roles (it holds the password)."""
        return self.source.dsn(databases.SHOP, role, getattr(self.secrets, role))

    def ledger_dsn(self) -> str:
        """Return the connection string of the ledger's and the catalog's database (it holds the password)."""
        return self.control.dsn(databases.PENSTOCK, databases.PENSTOCK, self.secrets.penstock)

    def environment(self) -> dict[str, str]:
        """Return what a process of the stack, or a shell for it, needs besides PATH; secrets included."""
        metadata = self.control.dsn(databases.AIRFLOW, databases.AIRFLOW, self.secrets.airflow)
        return (
            airflow.environment(self.project, self.ports["airflow"], metadata, self.secrets)
            | connections.environment(self.source.port, self.control.port, self.secrets)
            | self.tools()
            | (self.cluster.environment() if self.cluster else {})
        )

    def tools(self) -> dict[str, str]:
        """Return the part of `environment` that leads to programs and settings; no secret is among it."""
        return {
            "VIRTUAL_ENV": sys.prefix,
            "JAVA_HOME": str(java.home(self.project.jre)),
            "SPARK_HOME": str(spark_conf.home()),
            "SPARK_CONF_DIR": str(self.project.spark_conf),
            "SPARK_LOCAL_IP": ports.LOOPBACK,
            "PYSPARK_PYTHON": sys.executable,
            "NUMBA_CACHE_DIR": str(self.project.compiled),
            "PENSTOCK_HOME": str(self.project.root),
            "PENSTOCK_ZIP": str(self.project.library),
        }

    def process_environment(self) -> dict[str, str]:
        """Return the whole environment for a process of the stack: the caller's, with `environment` on top."""
        folders = [*map(str, self._program_folders()), os.environ.get("PATH", os.defpath)]
        return airflow.inherited() | self.environment() | {"PATH": os.pathsep.join(folders)}

    def write_environment(self) -> None:
        """Write the shell file that exports `environment`."""
        lines = [f"export {name}={shlex.quote(value)}" for name, value in self.environment().items()]
        path = ":".join(shlex.quote(str(folder)) for folder in self._program_folders())
        lines.append(f'export PATH={path}:"$PATH"')
        write_private(self.project.environment, SHELL_HEADER + "\n".join(lines) + "\n")

    def _program_folders(self) -> list[Path]:
        return [Path(sys.prefix) / "bin", self.project.root / "bin"]

    def _server(self, name: str, password: str, settings: dict[str, str]) -> Server:
        account = Account.for_postgres()
        folder = reachable_folder(self.project.servers, account)
        binaries = from_wheel(self.project.servers, account)
        return Server(folder / name, binaries, self.ports[name], password, settings, account)

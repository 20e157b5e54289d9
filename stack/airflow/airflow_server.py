"""Airflow on this machine: its settings, its metadata database, its four components, and whether they are well.

The components are started one by one in one session, because `airflow standalone` listens on every interface and
leaves its children behind when it is stopped.
"""

import hashlib
import json
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from penstock.polling import poll
from stack.airflow.rest_api import AirflowApi
from stack.atomic_write import tail, write_private, write_whole
from stack.background_process import Session
from stack.errors import StackError
from stack.paths import Project
from stack.ports import LOOPBACK
from stack.secrets import Secrets
from stack.servers.lake_catalog import sqlalchemy_url

USER = "admin"
PARALLELISM = 6
POOLS = {
    "penstock_source": (4, "Tasks that read a source database"),
    "penstock_spark": (1, "Tasks that run a Spark driver on this machine"),
    "penstock_backfill": (1, "The same, of resync, replay and changelog: no merge waits for them"),
}

COMPONENTS = {
    "api-server": "api-server",
    "scheduler": "scheduler --skip-serve-logs",
    "dag-processor": "dag-processor",
    "triggerer": "triggerer --skip-serve-logs",
}
CONTINUE = "then run the same command again: it goes on from here"
WELL_SECONDS = 60
"""A component that has run for so long was well: it is started again, as compose does, since its database may be away for seconds."""
TRIES = 30
"""So often in a row it may end sooner than that, which is how a database looks that is still away."""
RUN = """
logs=$1 well=$2 tries=$3 pause=$4
run() {
  left=0
  while
    began=$(date +%s); airflow "$@" >>"$logs/airflow-$1.log" 2>&1; status=$?
    [ $(($(date +%s) - began)) -lt "$well" ] || left=$tries
    [ "$left" -gt 0 ]
  do
    left=$((left - 1)); echo "$1 is started again after status $status"; sleep "$pause"
  done
  echo "$1 ended with status $status"
}
"""
"""Run one component; one that ends before it ever was well has a cause that no other try mends."""
# One shell leads the session and waits; each component has a log of its own, and its end is said in the session's.
START_ALL = "\n".join([RUN, *(f"run {command} &" for command in COMPONENTS.values()), "wait"])


@dataclass(frozen=True)
class Airflow:
    """Airflow's components of this project.

    `settings` are what has to be the same for a running Airflow to be left alone; `environ`, which holds them, is
    what the components get.
    """

    project: Project
    settings: Mapping[str, str]
    environ: Mapping[str, str]
    api: AirflowApi

    @property
    def session(self) -> Session:
        """Return the background session that the components live in."""
        return Session.of(self.project, "airflow")

    @property
    def url(self) -> str:
        """Return the address of the UI."""
        return self.api.url

    def migrate(self, metadata: str) -> None:
        """Bring the metadata database to this version's schema; `metadata` names the database that it is in.

        The command takes ten seconds even when there is nothing to do, so what was done is remembered.
        """
        done = self.project.airflow_home / "migrated.txt"
        wanted = f"Airflow {version('apache-airflow-core')} in database {metadata}\n"
        if done.exists() and done.read_text() == wanted:
            return
        log = self.project.logs / "airflow-migrate.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w") as sink:
            status = subprocess.run(
                [Path(self.environ["VIRTUAL_ENV"]) / "bin" / "airflow", "db", "migrate"],
                env=dict(self.environ),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                check=False,
            ).returncode
        if status != 0:
            raise StackError("`airflow db migrate` to succeed", tail(log, 3), f"read the log, {CONTINUE}", log)
        write_whole(done, wanted)

    def start(self) -> None:
        """Start the components, or leave them alone when they run with these same settings."""
        fingerprint = hashlib.sha256(json.dumps(dict(self.settings), sort_keys=True).encode()).hexdigest()
        if self.session.is_alive(fingerprint) and not self.dead_components():
            return
        self.session.stop()
        self.session.log.unlink(missing_ok=True)
        command = ["sh", "-c", START_ALL, "airflow", str(self.project.logs), str(WELL_SECONDS), str(TRIES), "5"]
        self.session.start(command, environ=self.environ, cwd=self.project.airflow_home, fingerprint=fingerprint)

    def wait_until_healthy(self, say: Callable[[str], None] = lambda _: None) -> None:
        """Return when the API and all components report themselves healthy; `say` hears what is missing."""
        for _ in poll():
            waiting = self.api.unhealthy()
            if not waiting:
                return
            self.require_alive()
            say(f"waiting for {', '.join(waiting)}; log: {self._log_of_waiting(waiting[0])}")

    def require_alive(self) -> None:
        """Raise StackError where a component has ended: nobody need wait for it any longer."""
        if dead := self.dead_components():
            raise self._unwell(f"{', '.join(dead)} ended", self.log_of(dead[0]))
        if not self.session.is_alive():
            raise self._unwell("it was stopped", self.session.log)

    def make_pools(self) -> None:
        """Make the pools that our DAGs name, unless they are there (a user may have resized them)."""
        for name, (slots, description) in POOLS.items():
            self.api.make_pool(name, slots, description)

    def dead_components(self) -> list[str]:
        """List the components that have ended since they were started."""
        said = tail(self.session.log, 100)
        return [name for name in COMPONENTS if f"{name} ended" in said]

    def log_of(self, component: str) -> Path:
        """Return the log of one component."""
        return self.project.logs / f"airflow-{component}.log"

    def _log_of_waiting(self, part: str) -> Path:
        """Return the log of what reports itself unhealthy, by the API's name of it."""
        component = part.replace("_", "-")
        return self.log_of(component if component in COMPONENTS else "api-server")

    def _unwell(self, came: str, log: Path) -> StackError:
        expected = "Airflow's four components to run"
        return StackError(expected, f"{came}\n{tail(log, 5)}", f"read the log, {CONTINUE}", log)


def environment(project: Project, port: int, metadata_dsn: str, secrets: Secrets) -> dict[str, str]:
    """Return Airflow's settings as environment variables; secrets are among them."""
    url = f"http://{LOOPBACK}:{port}"
    metadata = sqlalchemy_url(metadata_dsn).set(drivername="postgresql+psycopg2")
    return {
        "AIRFLOW_HOME": str(project.airflow_home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(project.root / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(project.root / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": str(PARALLELISM),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__CORE__FERNET_KEY": secrets.airflow_fernet_key,
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(project.login),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": metadata.render_as_string(hide_password=False),
        "AIRFLOW__API__HOST": LOOPBACK,
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API__SECRET_KEY": secrets.airflow_session,
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.airflow_jwt,
        # A new DAG file shows up within seconds, a changed pipeline file within two minutes.
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "10",
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "120",
        "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "120",  # a busy machine is slow, not wrong
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        **metrics(os.environ.get("STATSD")),
    }


def metrics(statsd: str | None) -> dict[str, str]:
    """Return the settings that send metrics to a StatsD at `<host>:<port>`, with tags as statsd_exporter reads them; none without one."""
    if not statsd:
        return {}
    host, _, port = statsd.rpartition(":")
    if not host or not port.isdecimal():
        raise StackError("STATSD as <host>:<port>", f"got {statsd!r}", "set it as in STATSD=127.0.0.1:9125")
    return {
        "AIRFLOW__METRICS__STATSD_ON": "True",
        "AIRFLOW__METRICS__STATSD_HOST": host,
        "AIRFLOW__METRICS__STATSD_PORT": port,
        "AIRFLOW__METRICS__STATSD_INFLUXDB_ENABLED": "True",
    }


def write_login(project: Project, secrets: Secrets) -> None:
    """Write the UI's user and password where Airflow looks for them (and a person may)."""
    write_private(project.login, json.dumps({USER: secrets.airflow_login}) + "\n")
    project.airflow_home.mkdir(parents=True, exist_ok=True)


def inherited(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the caller's environment without the settings of another Airflow, Spark or Python."""
    foreign = ("AIRFLOW", "SPARK_", "PYSPARK_", "PYTHONPATH", "PYTHONHOME", "PENSTOCK_")
    return {name: value for name, value in environ.items() if not name.startswith(foreign)}

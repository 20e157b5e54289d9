"""A small cluster next to the local stack: Spark standalone with two workers, and an object store for all files.

It stands in for `local[2]` and for the folders of landing zone and warehouse. Workers hold no secret of the store:
each application brings the login along.
"""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from penstock.polling import poll
from stack.atomic_write import tail
from stack.background_process import Session
from stack.cluster import object_store
from stack.cluster.object_store import ObjectStore
from stack.errors import StackError
from stack.paths import Project
from stack.ports import LOOPBACK
from stack.progress import Progress, Step
from stack.secrets import Secrets
from stack.spark import jars, java, spark_conf

PREFERRED_PORTS = {"store": 9878, "spark-master": 7077, "spark-master-page": 8088}
WORKERS = ("spark-worker-1", "spark-worker-2")
WORKER_MEMORY = "1g"
JARS = (*jars.JARS, *object_store.CLIENT)
LOGIN = "penstock"


@dataclass(frozen=True)
class Cluster:
    """The parts of the cluster, each a background session of its own."""

    project: Project
    ports: Mapping[str, int]
    secrets: Secrets

    @cached_property
    def store(self) -> ObjectStore:
        """Return the object store."""
        return ObjectStore(f"http://{LOOPBACK}:{self.ports['store']}", LOGIN, self.secrets.store)

    @property
    def warehouse(self) -> str:
        """Return the address of the lake's files, as Python's libraries write it."""
        return f"s3://{object_store.WAREHOUSE}"

    @property
    def pipelines(self) -> Path:
        """Return the folder of pipeline files whose landing zone is in the store."""
        return self.project.root / "docker" / "pipelines"

    @property
    def master(self) -> str:
        """Return the address that workers and applications give to Spark."""
        return f"spark://{LOOPBACK}:{self.ports['spark-master']}"

    def environment(self) -> dict[str, str]:
        """Return what a process of the stack needs to work on the cluster; secrets included."""
        host, _, port = self.master.rpartition(":")
        connection = {"conn_type": "spark", "host": host, "port": int(port)}
        return self.store.environment() | {
            "AIRFLOW_CONN_PENSTOCK_SPARK": json.dumps(connection),
            "PENSTOCK_PIPELINES": str(self.pipelines),
        }

    def settings(self) -> dict[str, str]:
        """Return Spark's settings, for drivers and executors."""
        local = spark_conf.settings(self.project.jars, self.project.warehouse, self.project.local / "spark-scratch")
        return local | settings(self.project.jars, self.store.address)

    def session(self, name: str) -> Session:
        """Return the background session of a part."""
        return Session.of(self.project, name)

    def running(self) -> dict[str, bool]:
        """Return for each port whether who listens there runs."""
        master = self.session("spark-master").is_alive()
        return {"store": self.session("store").is_alive(), "spark-master": master, "spark-master-page": master}

    def addresses(self) -> dict[str, str]:
        """Return where the parts that have an address of their own listen."""
        return {"store": self.store.address, "spark-master": self.master}

    def start(self, tools: Mapping[str, str], progress: Progress) -> None:
        """Start what does not run: the store, Spark's master and its workers. `tools` is their environment."""
        spark_conf.write_conf(self.project.spark_conf, self.settings())
        with progress.step("The object store") as step:
            self._start_store(tools)
            self._wait("store", step, self._store_answers)
            step.result = self.store.address
        with progress.step("Spark standalone") as step:
            self._start_spark(tools)
            self._wait("spark-master", step, self._workers_are_there)
            step.result = f"{self.master} with {len(WORKERS)} workers"

    def _start_store(self, tools: Mapping[str, str]) -> None:
        program = (Path(tools["VIRTUAL_ENV"]) / "bin" / "python", "-m", "stack.cluster.object_store")
        where = ("--address", self.store.address, "--folder", self.project.local / "store")
        self.session("store").start(
            [*program, *map(str, where), "--jars", str(self.project.jars)],
            environ=dict(tools) | self.store.environment(),
            cwd=self.project.root,
        )

    def _start_spark(self, tools: Mapping[str, str]) -> None:
        environ = dict(tools) | {"SPARK_DAEMON_MEMORY": "256m"}
        program = Path(tools["SPARK_HOME"]) / "bin" / "spark-class"
        listen = ("--host", LOOPBACK, "--port", str(self.ports["spark-master"]))
        page = ("--webui-port", str(self.ports["spark-master-page"]))
        self.session("spark-master").start(
            [program, "org.apache.spark.deploy.master.Master", *listen, *page], environ=environ, cwd=self.project.local
        )
        for name in WORKERS:
            size = ("--host", LOOPBACK, "--cores", "1", "--memory", WORKER_MEMORY, "--webui-port", "0")
            folder = ("--work-dir", str(self.project.local / name))
            self.session(name).start(
                [program, "org.apache.spark.deploy.worker.Worker", *size, *folder, self.master],
                environ=environ,
                cwd=self.project.local,
            )

    def _store_answers(self) -> str:
        try:
            urllib.request.urlopen(self.store.address, timeout=5)  # noqa: S310  # our own address
        except urllib.error.HTTPError:
            return ""  # it refuses who does not log in
        except OSError as error:
            return str(error)
        return ""

    def _workers_are_there(self) -> str:
        address = f"http://{LOOPBACK}:{self.ports['spark-master-page']}/json/"
        try:
            with urllib.request.urlopen(address, timeout=5) as page:  # our own address
                alive = int(json.load(page)["aliveworkers"])
        except OSError as error:
            return str(error)
        return "" if alive == len(WORKERS) else f"{alive} of {len(WORKERS)} workers"

    def _wait(self, name: str, step: Step, missing: Callable[[], str]) -> None:
        session = self.session(name)
        for _ in poll():
            waiting_for = missing()
            if not waiting_for:
                return
            step.say(waiting_for)
            if not session.is_alive():
                came = f"{waiting_for}\n{tail(session.log, 5)}"
                raise StackError(f"{name} to be ready", came, "read its log", session.log)


def settings(jar_folder: Path, store_address: str, memory: str = WORKER_MEMORY) -> dict[str, str]:
    """Return what Spark's settings have on a cluster beyond those of one machine, or instead."""
    class_path = jars.class_path(jar_folder, JARS)
    return {
        "spark.driver.extraClassPath": class_path,
        "spark.executor.extraClassPath": class_path,
        "spark.executor.extraJavaOptions": java.SHORT_LIVED,
        "spark.executor.memory": memory,
        "spark.worker.cleanup.enabled": "true",  # else each application's folder stays with the worker for ever
        "spark.worker.cleanup.appDataTtl": "86400",
    } | object_store.spark_settings(store_address, spark_conf.CATALOG)

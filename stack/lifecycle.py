"""Bringing the local stack up and down, step by step; every step may be run again, whatever happened before.

Nothing here remembers how far it came: each step looks at what is there and does what is missing.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from penstock import package
from stack import ports
from stack.airflow import airflow_server
from stack.atomic_write import write_whole
from stack.cluster import object_store
from stack.errors import StackError
from stack.paths import Project
from stack.progress import Progress
from stack.servers import databases, lake_catalog
from stack.servers.postgres_user import shelter_of
from stack.spark import class_archive, jars, java, spark_conf
from stack.stack import Stack

# The decoder's compiled passes are cached on disk; compiling them takes seconds that no first run should pay.
WARM_UP = "from penstock.wire import columnar; columnar.warm_up()"


@contextmanager
def alone(project: Project) -> Iterator[None]:
    """Hold the project's lock: two commands never change one stack at once (the kernel frees it if we die)."""
    project.local.mkdir(parents=True, exist_ok=True)
    with (project.local / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StackError(
                "to be the only command at work on this stack",
                f"another `make` or `python -m stack` holds {lock.name}",
                "wait until it ends, or stop it",
            ) from None
        yield


def set_up(project: Project, progress: Progress, *, archive: bool = True) -> None:
    """Make everything that needs no server: Java, jars, Spark's settings, the library's zip.

    Without the archive of Spark's classes applications start more slowly: it is 200 MB, for one machine's class path.
    """
    with progress.step("Java for Spark") as step:
        java_home = java.home(project.jre)
        step.result = f"{java_home}"
    _fetch(jars.JARS, project, progress)
    if archive:
        with progress.step("Spark's classes, archived for quick starts") as step:
            log = project.logs / "class-archive.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            step.result = class_archive.make(
                project.jars.resolve(), spark_conf.home(), java_home, spark_conf.class_path(project.jars), log
            )
    for folder in (project.warehouse, project.landing, project.local / "spark-scratch"):
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)  # all of them hold rows
    scratch = project.local / "spark-scratch"
    spark_conf.write_conf(project.spark_conf, spark_conf.settings(project.jars, project.warehouse, scratch))
    with progress.step("The library, packed for Spark and compiled") as step:
        step.result = _pack(project)


def fetch_cluster(project: Project, progress: Progress) -> None:
    """Fetch the jars of the object store and of its clients, unless they are there."""
    _fetch((*object_store.SERVER, *object_store.CLIENT), project, progress)


def up(project: Project, progress: Progress) -> Stack:
    """Bring up servers and Airflow, and return the running stack."""
    stack = _with_free_ports(Stack.load(project))
    set_up(project, progress)
    stack.write_environment()
    _start_servers(stack, progress)
    if stack.cluster:
        fetch_cluster(project, progress)
        stack.cluster.start(stack.tools(), progress)
    with progress.step("Airflow's metadata") as step:
        stack.airflow.migrate(f"{databases.AIRFLOW} of {databases.system_identifier(stack.control)}")
    with progress.step("Airflow") as step:
        airflow_server.write_login(project, stack.secrets)
        stack.airflow.start()
        stack.airflow.wait_until_healthy(step.say)
        stack.airflow.make_pools()
        step.result = stack.airflow.url
    return stack


def start_servers(project: Project, progress: Progress) -> Stack:
    """Bring up the two servers with their databases, without Airflow."""
    stack = _with_free_ports(Stack.load(project))
    set_up(project, progress)
    stack.write_environment()
    _start_servers(stack, progress)
    return stack


def down(project: Project, progress: Progress) -> None:
    """Stop every process that the stack started, those of a stack on a cluster too."""
    if not project.on_cluster:
        down(project.clustered(), progress)
    if not project.state.exists():
        return
    stack = Stack.load(project)
    for session in stack.sessions():
        with progress.step(f"Stopping {session.name}"):
            session.stop()
    for name, server in (("source", stack.source), ("control", stack.control)):
        if server.is_running():
            with progress.step(f"Stopping the {name} server"):
                server.stop()


def clean(project: Project, progress: Progress) -> None:
    """Stop everything and delete what was generated, the data of both servers and the lake included."""
    down(project, progress)
    for each in (project, project.clustered()):
        shutil.rmtree(shelter_of(each.servers), ignore_errors=True)
    shutil.rmtree(project.local, ignore_errors=True)


def _with_free_ports(stack: Stack) -> Stack:
    """Keep the ports of what runs, and of what does not unless another program took them meanwhile."""
    running = {
        "source": stack.source.is_running(),
        "control": stack.control.is_running(),
        "airflow": stack.airflow.session.is_alive(),
        **(stack.cluster.running() if stack.cluster else {}),
    }
    chosen = {name: stack.ports[name] for name in running if running[name]}
    for name in running:
        chosen.setdefault(name, ports.choose(stack.ports[name], avoid=chosen.values()))
    stack.project.write_ports(chosen)
    return replace(stack, ports=chosen)


def _start_servers(stack: Stack, progress: Progress) -> None:
    with progress.step("The source server") as step:
        stack.source.start()
        secrets = stack.secrets
        passwords = {
            "shop_app": secrets.shop_app,
            "penstock_capture": secrets.penstock_capture,
            "penstock_reader": secrets.penstock_reader,
        }
        databases.prepare(stack.source, databases.SOURCE_ROLES, databases.SOURCE_ROOMS, passwords)
        step.result = f"PostgreSQL {stack.source.version} on 127.0.0.1:{stack.source.port}"
    with progress.step("The control server") as step:
        stack.control.start()
        passwords = {"penstock": stack.secrets.penstock, "airflow": stack.secrets.airflow}
        databases.prepare(stack.control, databases.CONTROL_ROLES, databases.CONTROL_ROOMS, passwords)
        lake_catalog.create_tables(stack.ledger_dsn())
        step.result = f"PostgreSQL {stack.control.version} on 127.0.0.1:{stack.control.port}"


def _fetch(wanted: Sequence[jars.Jar], project: Project, progress: Progress) -> None:
    if missing := jars.missing(project.jars, wanted):
        what = missing[0].file_name if len(missing) == 1 else f"{len(missing)} jars"
        with progress.step(f"Fetching {what}"):
            jars.fetch(missing, project.jars, java.home(project.jre), project.logs / "fetch-jars.log")


def _pack(project: Project) -> str:
    package.build(project.root, project.library)
    digest = hashlib.sha256(project.library.read_bytes()).hexdigest()
    cache = project.compiled
    compiled = cache / "compiled-for.txt"
    if compiled.exists() and compiled.read_text() == digest:
        return "unchanged"
    cache.mkdir(parents=True, exist_ok=True)
    said = subprocess.run(
        [sys.executable, "-c", WARM_UP],
        env=os.environ | {"PYTHONPATH": str(project.root / "plugins"), "NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    if said.returncode != 0:
        raise StackError("the decoder to compile", said.stderr.strip()[-2000:], "fix what is named above")
    write_whole(compiled, digest)
    return "renewed"

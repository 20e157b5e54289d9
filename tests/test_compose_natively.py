"""The containers' own commands as plain processes: what the compose file starts comes up and does the main job.

Names and ports of services become loopback ports, the image's folder becomes one of the test's; all else is the
file's own: commands, environments, scripts, health checks.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from airflow.utils.net import get_hostname
from rich.console import Console

from stack import lifecycle, ports
from stack.paths import Project
from stack.progress import Progress
from stack.servers.binaries import Binaries
from stack.servers.postgres import Server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

HERE = Project.here()
PATIENCE = 400.0
GRACE = 30.0
IN_IMAGE = "/opt/penstock"
GO_PROGRAMS = HERE.local / "go" / "bin"
LISTENS = {
    "source": [5432],
    "control": [5432],
    "store": [9878],
    "spark-master": [7077, 8080],
    "spark-worker": [8081],
    "api-server": [8080],
    "scheduler": [],
    "dag-processor": [],
    "triggerer": [],
}
METRICS = {"statsd": [9125, 9102]}  # a program of Go's: fetched and compiled where there is a Go
BOUND = ("spark-master", "statsd", "0.0.0.0")  # what listens there listens on loopback here
# Containers have a network of their own; here two services would meet on one port of every interface.
ENTRYPOINTS = {"statsd": [str(GO_PROGRAMS / "statsd_exporter")]}  # what the image starts by itself
NATIVELY = {"scheduler": ["--skip-serve-logs"], "triggerer": ["--skip-serve-logs"]}
TABLES = """
create schema shop;
create table shop.orders (id int primary key, note text);
insert into shop.orders select n, repeat('x', n) from generate_series(1, 1000) n;
create unlogged table shop.session_cache (id int);
create table public.pgbench_branches (bid int primary key);
create publication penstock_shop for table shop.orders, public.pgbench_branches;
grant usage on schema shop to penstock_reader;
grant select on shop.orders, public.pgbench_branches to penstock_reader;
"""


@dataclass
class Services:
    """The compose file's services on this machine; `home` stands for the image's `.local`."""

    home: Path
    natively: Mapping[tuple[str, int], int]
    secrets: Mapping[str, str]
    programs: Path
    java_home: Path

    def __post_init__(self) -> None:
        text = re.sub(r"(?<!\$)\$\{(\w+)[^}]*\}", lambda found: self.secrets[found[1]], self._file())
        self.all: dict[str, Any] = yaml.safe_load(text)["services"]
        self.started: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        """Start a service, and wait until its own health check is content."""
        said = [*ENTRYPOINTS.get(name, []), *self.all[name]["command"]]
        command = [self.here(name, part) for part in said] + NATIVELY.get(name, [])
        with (self.home / f"{name}.log").open("wb") as log:
            self.started[name] = subprocess.Popen(
                command, cwd=HERE.root, env=self.environment(name), stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + PATIENCE
        while not self.is_healthy(name):
            alive = self.started[name].poll() is None and time.monotonic() < deadline
            assert alive, (self.home / f"{name}.log").read_text()[-3000:]
            time.sleep(1)

    def is_healthy(self, name: str) -> bool:
        kind, *check = self.all[name]["healthcheck"]["test"]
        parts = [self.here(name, part.replace("$$", "$")) for part in check]
        command = ["sh", "-c", *parts] if kind == "CMD-SHELL" else parts
        return subprocess.run(command, env=self.environment(name), capture_output=True, check=False).returncode == 0

    def run(self, name: str, command: Sequence[str], **more: str) -> str:
        """Run a command in a service's environment to its end; return what it printed."""
        said = subprocess.run(
            [self.here(name, part) for part in command],
            cwd=HERE.root,
            env=self.environment(name) | more,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert said.returncode == 0, said.stdout[-5000:]
        return said.stdout

    def environment(self, name: str) -> dict[str, str]:
        """Return the image's variables, the service's on top, and what only plain processes need."""
        image = re.search(r"^ENV ((?:.*\\\n)*.*)$", (HERE.root / "Dockerfile").read_text(), re.MULTILINE)
        assert image is not None
        given = dict(pair.split("=", 1) for pair in image[1].replace("\\\n", " ").split()) if self._ours(name) else {}
        given |= self.all[name].get("environment", {})
        path = [
            *(str(folder) for folder in (Path(sys.executable).parent, HERE.root / "bin", self.programs, GO_PROGRAMS)),
            os.environ["PATH"],
        ]
        mine = {
            "HOME": str(self.home),
            "HOSTNAME": get_hostname(),
            "JAVA_HOME": str(self.java_home),
            "PATH": os.pathsep.join(path),
            "PGHOST": "127.0.0.1",
            "PGPORT": str(self.natively.get((name, 5432), 0)),
            "PGPASSWORD": "only-for-tests",
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_HOME": str(next(Path(sys.prefix).glob("lib/python*/site-packages/pyspark"))),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(self.natively["api-server", 8080]),
            "PENSTOCK_PIPELINES": str(HERE.root / self.secrets["PENSTOCK_PIPELINES"]),
            "AIRFLOW__METRICS__STATSD_PORT": str(self.natively["statsd", 9125]),
        }
        return {key: self.here(name, value) for key, value in given.items()} | mine

    def here(self, name: str, text: str) -> str:
        """Say for this machine what the file says for the containers."""
        for (service, port), native in self.natively.items():
            text = re.sub(
                rf'"host": "(spark://)?{service}", "port": {port}', rf'"host": "\g<1>127.0.0.1", "port": {native}', text
            )
            text = re.sub(rf"(?<![\w-]){service}([:/]){port}\b", rf"127.0.0.1\g<1>{native}", text)
            if service == name:
                text = re.sub(rf"(?<==):{port}\b", f"127.0.0.1:{native}", text)
                text = re.sub(rf"(127|0)\.0\.0\.[01]([:/]){port}\b", rf"127.0.0.1\g<2>{native}", text)
                text = str(native) if text == str(port) else text
        text = "127.0.0.1" if text in BOUND else text
        text = text.replace(f"{IN_IMAGE}/.local", str(self.home)).replace(IN_IMAGE, str(HERE.root))
        return re.sub(r"^\.local(?=/)", str(self.home), text)

    def stop(self) -> None:
        """Do as Docker does: ask each service's first process, and after a while end all that is left of it."""
        for process in reversed(self.started.values()):
            process.terminate()
        deadline = time.monotonic() + GRACE
        for process in self.started.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _ours(self, name: str) -> bool:
        return "build" in self.all[name]

    @staticmethod
    def _file() -> str:
        return (HERE.root / "docker-compose.yaml").read_text()


def settings(command: Sequence[str]) -> dict[str, str]:
    """Return the settings on a PostgreSQL server's command line."""
    return dict(part.removeprefix("-c").split("=", 1) for part in command if part.startswith("-c"))


@pytest.fixture(scope="module")
def services(
    tmp_path_factory: pytest.TempPathFactory, new_server: Any, binaries16: Binaries, java_home: Path
) -> Iterator[Services]:
    """All services, started in order by their own commands."""
    quiet = Progress(Console(quiet=True))
    lifecycle.set_up(HERE, quiet)
    lifecycle.fetch_cluster(HERE, quiet)
    home = tmp_path_factory.mktemp("image")
    for shared in (HERE.jars, HERE.compiled, HERE.library):
        (home / shared.name).symlink_to(shared)
    made = subprocess.run([HERE.root / "docker" / "new-env.sh"], capture_output=True, text=True, check=True).stdout
    secrets = dict(line.split("=", 1) for line in made.splitlines() if line and not line.startswith("#"))
    chosen: dict[tuple[str, int], int] = {}
    for name, listening in (LISTENS | METRICS).items():
        for port in listening:
            chosen[name, port] = ports.choose(avoid=chosen.values())
    text = yaml.safe_load((HERE.root / "docker-compose.yaml").read_text())["services"]
    servers: list[Server] = []
    for name in ("source", "control"):
        servers.append(new_server(binaries16, settings(text[name]["command"])))
        chosen[name, 5432] = servers[-1].port
    services = Services(home, chosen, secrets, binaries16.folder, java_home)
    conf = (HERE.root / "docker" / "spark-defaults.conf").read_text().splitlines()
    (home / "spark-conf").mkdir()
    (home / "spark-conf" / "spark-defaults.conf").write_text(
        "".join(
            " ".join(services.here("scheduler", word) for word in line.replace(" scheduler", " 127.0.0.1").split(" "))
            + "\n"
            for line in conf
        )
    )
    shutil.copy(HERE.spark_conf / "log4j2.properties", home / "spark-conf")
    try:
        with servers[0].connect() as connection:
            connection.execute("create database shop")
        for name in ("source", "control"):
            assert services.is_healthy(name)
            services.run(name, [f"{HERE.root}/docker/{name}-init.sh"], POSTGRES_USER="postgres")
        services.run("init", [f"{HERE.root}/docker/init.sh"])
        for name in LISTENS:
            if name not in ("source", "control"):
                services.start(name)
        yield services
    finally:
        services.stop()
        for server in servers:
            server.stop()


def test_every_service_is_healthy_by_its_own_check(services: Services) -> None:
    assert all(services.is_healthy(name) for name in LISTENS)
    assert set(LISTENS) == set(services.all) - {"init", "statsd"}  # that one is no program of ours


def test_the_main_job_runs_on_the_services_and_ends_equal(services: Services) -> None:
    port, password = services.natively["source", 5432], "only-for-tests"
    with psycopg.connect(
        host="127.0.0.1", port=port, dbname="shop", user="postgres", password=password, autocommit=True
    ) as connection:
        connection.execute(TABLES)
        services.run("scheduler", ["penstock", "bootstrap", "shop"])
        connection.execute("update shop.orders set note = 'changed' where id % 10 = 0")

    services.run("scheduler", ["penstock", "capture", "shop"])
    services.run("scheduler", ["penstock", "merge", "shop"])

    assert "shop.orders: equal" in services.run("scheduler", ["penstock", "verify", "shop", "--now"])
    stored = {
        path.relative_to(services.home / "store").parts[0] for path in (services.home / "store").rglob("*.parquet")
    }
    assert stored == {"landing", "warehouse"}


@pytest.fixture(scope="module")
def exporter(services: Services) -> str:
    """The exporter of metrics, of the image's version, started by the file's own command; its address."""
    _, version = services.all["statsd"]["image"].split(":")
    program = GO_PROGRAMS / "statsd_exporter"
    if not program.exists():
        if shutil.which("go") is None:
            pytest.skip("the exporter is a program of Go's, and there is no Go here")
        home = GO_PROGRAMS.parent
        places = {"GOBIN": home / "bin", "GOPATH": home / "path", "GOCACHE": home / "cache", "GOFLAGS": "-modcacherw"}
        subprocess.run(
            ["go", "install", f"github.com/prometheus/statsd_exporter@{version}"],
            env=os.environ | {key: str(value) for key, value in places.items()},
            check=True,
        )
    services.start("statsd")
    return f"http://127.0.0.1:{services.natively['statsd', 9102]}/metrics"


def test_airflows_metrics_and_ours_are_what_prometheus_reads(services: Services, exporter: str) -> None:
    ours = "from penstock.orchestration.notifications import send_gauges; send_gauges('shop', {'penstock.slot.unread_bytes': 7})"
    services.run("scheduler", [sys.executable, "-c", ours], PYTHONPATH=str(HERE.root / "plugins"))  # as Airflow has it
    deadline = time.monotonic() + PATIENCE
    shown = ""
    while not ("penstock_slot" in shown and "airflow_scheduler_heartbeat" in shown):
        assert time.monotonic() < deadline, shown[-3000:]
        with urllib.request.urlopen(exporter) as answer:
            shown = answer.read().decode()
        time.sleep(1)

    assert 'airflow_penstock_slot_unread_bytes{pipeline="shop"} 7' in shown.splitlines()


def test_the_metrics_go_where_the_exporter_listens(services: Services) -> None:
    host, port = "AIRFLOW__METRICS__STATSD_HOST", "AIRFLOW__METRICS__STATSD_PORT"
    given = services.environment("scheduler")
    program = "from airflow.sdk.observability import stats; stats.gauge('penstock.test', 7)"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as exporter:
        exporter.bind(("127.0.0.1", 0))
        exporter.settimeout(60)
        services.run(
            "scheduler", [sys.executable, "-c", program], **{host: "127.0.0.1", port: str(exporter.getsockname()[1])}
        )
        received = iter(lambda: exporter.recv(65536), b"")  # Airflow's own come first; none at all is a timeout
        assert any(b"airflow.penstock.test:7|g" in packet for packet in received)
    assert given["AIRFLOW__METRICS__STATSD_ON"] == "True"

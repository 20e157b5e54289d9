"""The containers' own commands as plain processes: what the compose file starts comes up and does the main job.

Names and ports of services become loopback ports, and the image is a folder, made by the Dockerfile's steps; all else is
the file's own: commands, environments, secrets, scripts, health checks.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
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

from stack import ports
from stack.paths import Project
from stack.servers.binaries import Binaries
from stack.servers.postgres import Server
from tests import container_image
from tests.container_image import IN_IMAGE

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

HERE = Project.here()
PATIENCE = 900.0
GRACE = 30.0
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
PASSWORD = "only-for-tests"
TABLES = 20


@dataclass
class Services:
    """The compose file's services on this machine; `image` stands for the image's folder, `home` keeps logs and secrets."""

    image: Path
    home: Path
    natively: Mapping[tuple[str, int], int]
    programs: Path
    java_home: Path

    def __post_init__(self) -> None:
        text = re.sub(r"(?<!\$)\$\{\w+:-([^}]*)\}", r"\1", (HERE.root / "docker-compose.yaml").read_text())
        self.all: dict[str, Any] = yaml.safe_load(text)["services"]
        self.started: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        """Start a service, and wait until its own health check is content."""
        said = [*ENTRYPOINTS.get(name, []), *self.all[name]["command"]]
        command = [self.here(name, part) for part in said] + NATIVELY.get(name, [])
        with (self.home / f"{name}.log").open("wb") as log:
            self.started[name] = subprocess.Popen(
                command, cwd=self.image, env=self.environment(name), stdout=log, stderr=log, start_new_session=True
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
        return container_image.run(
            [self.here(name, part) for part in command], self.image, self.environment(name) | more
        )

    def verified(self) -> list[str]:
        """Wait until the lake is what the source is now, and return the tables that `verify` calls equal."""
        deadline, said = time.monotonic() + PATIENCE, ""
        while time.monotonic() < deadline:
            # Before the bootstrap has made its list there is no table to compare, which is no error.
            with suppress(AssertionError):
                said = self.run("scheduler", ["penstock", "verify", "shop", "--now"])
                if equal := re.findall(r"^(\S+): equal", said, re.MULTILINE):
                    return equal
            time.sleep(5)
        raise AssertionError(said)

    def environment(self, name: str) -> dict[str, str]:
        """Return the image's variables, the service's on top, and what only plain processes need."""
        given = container_image.variables(self.image, self.java_home) if self._ours(name) else {}
        given |= self.all[name].get("environment", {})
        path = [*([given["PATH"]] if "PATH" in given else []), str(self.programs), str(GO_PROGRAMS), os.environ["PATH"]]
        mine = {
            "HOME": str(self.home),
            "HOSTNAME": get_hostname(),
            "PATH": os.pathsep.join(path),
            "PGHOST": "127.0.0.1",
            "PGPORT": str(self.natively.get((name, 5432), 0)),
            "PGPASSWORD": PASSWORD,
            "PENSTOCK_SAMPLE": str(self.home / "sample"),
            "PENSTOCK_SECRETS": str(self.home / "secrets" / name),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(self.natively["api-server", 8080]),
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
        return text.replace(IN_IMAGE, str(self.image))

    def mount(self) -> None:
        """Give each service the secrets that it names, the source its sample, and Airflow the folder of pipelines."""
        made = self.home / ".secrets"
        subprocess.run([HERE.root / "docker" / "new-secrets.sh", made], stdout=subprocess.DEVNULL, check=True)
        for name, service in self.all.items():
            (self.home / "secrets" / name).mkdir(parents=True)
            for secret in service.get("secrets", []):
                shutil.copy(made / secret, self.home / "secrets" / name)
        (self.home / "sample").mkdir()
        for kept in self.all["source"]["volumes"]:
            path, target, *_ = kept.split(":")
            if target.startswith("/sample/"):
                shutil.copy(HERE.root / path, self.home / target.removeprefix("/"))
        shutil.rmtree(self.image / "include" / "pipelines")
        (self.image / "include" / "pipelines").symlink_to(HERE.root / "docker" / "pipelines")

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
        return bool(self.all[name]["image"] == self.all["init"]["image"])


def settings(command: Sequence[str]) -> dict[str, str]:
    """Return the settings on a PostgreSQL server's command line."""
    return dict(part.removeprefix("-c").split("=", 1) for part in command if part.startswith("-c"))


@pytest.fixture(scope="module")
def services(
    tmp_path_factory: pytest.TempPathFactory, new_server: Any, binaries16: Binaries, java_home: Path
) -> Iterator[Services]:
    """All services, started in order by their own commands."""
    home = tmp_path_factory.mktemp("containers")
    image = container_image.build(home / "image", java_home)
    chosen: dict[tuple[str, int], int] = {}
    for name, listening in (LISTENS | METRICS).items():
        for port in listening:
            chosen[name, port] = ports.choose(avoid=chosen.values())
    text = yaml.safe_load((HERE.root / "docker-compose.yaml").read_text())["services"]
    servers: list[Server] = []
    for name in ("source", "control"):
        servers.append(new_server(binaries16, settings(text[name]["command"])))
        chosen[name, 5432] = servers[-1].port
    services = Services(image, home, chosen, binaries16.folder, java_home)
    services.mount()
    conf = image / ".local" / "spark-conf" / "spark-defaults.conf"
    lines = conf.read_text().replace(" scheduler\n", " 127.0.0.1\n").splitlines()
    conf.write_text(
        "".join(" ".join(services.here("scheduler", word) for word in line.split(" ")) + "\n" for line in lines)
    )
    try:
        with servers[0].connect() as connection:
            connection.execute("create database shop")
        for name in ("source", "control"):
            assert services.is_healthy(name)
            services.run(name, [f"{HERE.root}/docker/{name}-init.sh"], POSTGRES_USER="postgres", POSTGRES_DB="shop")
        services.run("init", services.all["init"]["command"])
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


def test_init_runs_again_on_what_is_there(services: Services) -> None:
    login = services.image / ".local" / "airflow" / "login.json"
    before = login.read_text()

    services.run("init", services.all["init"]["command"])

    assert login.read_text() == before


def test_one_command_starts_the_pipeline_and_its_lake_follows_the_sample(services: Services) -> None:
    report = services.run("scheduler", ["penstock", "check", "shop"])
    services.run("scheduler", ["penstock", "start", "shop"])
    copied = services.verified()
    services.run("source", ["pgbench", "--transactions", "200", "--username", "postgres", "shop"])
    with psycopg.connect(
        host="127.0.0.1", port=services.natively["source", 5432], dbname="shop", user="postgres", password=PASSWORD
    ) as connection:
        connection.execute("update shop.orders set note = 'changed' where id % 10 = 0")

    followed = services.verified()

    assert not re.search(r"^ERROR", report, re.MULTILINE), report
    assert len(copied) == TABLES
    assert sorted(followed) == sorted(copied)
    store = services.image / ".local" / "store"
    assert {path.relative_to(store).parts[0] for path in store.rglob("*.parquet")} == {"landing", "warehouse"}


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
    services.run("scheduler", ["with-secrets", "python", "-c", ours], PYTHONPATH=str(services.image / "plugins"))
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
            "scheduler",
            ["with-secrets", "python", "-c", program],
            **{host: "127.0.0.1", port: str(exporter.getsockname()[1])},
        )
        received = iter(lambda: exporter.recv(65536), b"")  # Airflow's own come first; none at all is a timeout
        assert any(b"airflow.penstock.test:7|g" in packet for packet in received)
    assert given["AIRFLOW__METRICS__STATSD_ON"] == "True"

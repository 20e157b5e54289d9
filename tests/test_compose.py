"""The stack in containers, as far as it can be checked without containers: its file, its image, its scripts."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from cryptography.fernet import Fernet

from penstock.config import Pipeline
from stack.airflow.airflow_server import COMPONENTS, POOLS
from stack.cluster import object_store, standalone
from stack.paths import Project
from stack.servers.binaries import Binaries
from stack.spark import spark_conf

ROOT = Project.here().root
AIRFLOW = ("init", "api-server", "scheduler", "dag-processor", "triggerer")
POSTGRES = ("source", "control")
SPARK = ("spark-master", "spark-worker")
IN_IMAGE = Path("/opt/penstock")
SECRET_NAME = re.compile(r"PASSWORD$|SECRET|_KEY$")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded = yaml.safe_load((ROOT / "docker-compose.yaml").read_text())
    assert isinstance(loaded, dict)
    return loaded


@pytest.fixture(scope="module")
def services(compose: dict[str, Any]) -> dict[str, Any]:
    found = compose["services"]
    assert isinstance(found, dict)
    return found


def env_example() -> dict[str, str]:
    lines = (ROOT / ".env.example").read_text().splitlines()
    pairs = [line.split("=", 1) for line in lines if line and not line.startswith("#")]
    return dict(pairs)


def dockerfile() -> str:
    return (ROOT / "Dockerfile").read_text()


def test_the_services_are_servers_store_spark_airflow_and_the_exporter_of_metrics(services: dict[str, Any]) -> None:
    assert set(services) == {*AIRFLOW, *POSTGRES, *SPARK, "store", "statsd"}


def test_the_source_writes_wal_for_logical_decoding_and_bounds_what_a_slot_keeps(services: dict[str, Any]) -> None:
    command = services["source"]["command"]

    assert "-cwal_level=logical" in command
    assert any(re.fullmatch(r"-cmax_slot_wal_keep_size=\d+GB", part) for part in command)


def test_every_image_is_pinned_to_a_full_version(services: dict[str, Any]) -> None:
    base = re.search(r"^FROM (\S+)", dockerfile(), re.MULTILINE)
    images = {service["image"] for service in services.values() if "build" not in service}

    assert base is not None
    for image in {*images, base[1]}:
        assert re.search(r":v?\d+(\.\d+)+", image), image


def test_the_postgresql_image_is_new_enough_to_be_a_source(services: dict[str, Any]) -> None:
    match = re.fullmatch(r"postgres:16\.(\d+)-\w+", services["source"]["image"])

    assert match is not None
    assert int(match[1]) >= 11


def test_nothing_runs_as_root(services: dict[str, Any]) -> None:
    users = {name: service["user"] for name, service in services.items() if "build" not in service}

    assert users == {"source": "postgres", "control": "postgres", "statsd": "65534"}
    assert re.findall(r"^USER (\S+)", dockerfile(), re.MULTILINE) == ["penstock"]
    for service in services.values():
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]


def test_every_lasting_service_has_a_health_check(services: dict[str, Any]) -> None:
    assert {name for name, service in services.items() if "healthcheck" not in service} == {"init"}


def test_every_lasting_service_comes_back_and_has_a_bound_of_memory(services: dict[str, Any]) -> None:
    assert {name for name, service in services.items() if service["restart"] != "unless-stopped"} == {"init"}
    assert {name for name, service in services.items() if "mem_limit" not in service} == {"init"}


def test_ports_are_published_on_loopback_only(services: dict[str, Any]) -> None:
    published = [port for service in services.values() for port in service.get("ports", [])]

    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_every_secret_comes_from_the_env_file_and_must_be_given(services: dict[str, Any]) -> None:
    for service in services.values():
        for name, value in service.get("environment", {}).items():
            if SECRET_NAME.search(name):
                assert re.fullmatch(r"\$\{\w+:\?fill in \.env\}", value), name
            for password in re.findall(r'"password": "([^"]*)"|://\w+:([^@]*)@', value):
                assert re.fullmatch(r"\$\{\w+:\?fill in \.env\}", "".join(password)), name


def test_the_example_names_every_variable_and_gives_no_secret() -> None:
    used = set(re.findall(r"(?<!\$)\$\{(\w+)", (ROOT / "docker-compose.yaml").read_text()))
    example = env_example()

    assert used == set(example)
    assert not any(value for name, value in example.items() if SECRET_NAME.search(name))


def generated_env() -> dict[str, str]:
    said = subprocess.run([ROOT / "docker" / "new-env.sh"], capture_output=True, text=True, check=True)
    return dict(line.split("=", 1) for line in said.stdout.splitlines() if line and not line.startswith("#"))


def test_a_generated_env_file_gives_every_secret_a_value_of_its_own_that_fits_into_json_and_urls() -> None:
    made, again, example = generated_env(), generated_env(), env_example()
    secrets = [name for name, value in example.items() if not value]

    assert list(made) == list(example)
    assert len({made[name] for name in secrets} | {again[name] for name in secrets}) == 2 * len(secrets)
    assert all(re.fullmatch(r"[\w=-]{32,}", made[name]) for name in secrets)
    assert Fernet(made["AIRFLOW_FERNET_KEY"]).encrypt(b"")
    assert {name: made[name] for name in example if name not in secrets} == {
        name: value for name, value in example.items() if value
    }


def test_spark_holds_no_secret_of_its_own(services: dict[str, Any]) -> None:
    assert all(set(services[name]["environment"]) == {"SPARK_DAEMON_MEMORY"} for name in SPARK)


def test_sparks_settings_are_those_of_a_cluster_and_lead_executors_back_to_the_driver(services: dict[str, Any]) -> None:
    lines = (ROOT / "docker" / "spark-defaults.conf").read_text().splitlines()
    found = dict(line.split(" ", 1) for line in lines if not line.startswith("#"))
    project = Project(IN_IMAGE, IN_IMAGE / ".local")
    local = spark_conf.settings(project.jars, project.warehouse, project.local / "spark-scratch")
    store = services["scheduler"]["environment"]["PENSTOCK_STORE"]
    memory = services["spark-worker"]["command"][services["spark-worker"]["command"].index("--memory") + 1]
    reached = {"spark.driver.host": services["scheduler"]["hostname"], "spark.driver.bindAddress": "0.0.0.0"}

    assert found == local | standalone.settings(project.jars, store, memory) | reached


def test_the_pipeline_of_the_containers_is_the_demos_with_its_landing_zone_in_the_store() -> None:
    ours, demos = (
        yaml.safe_load((ROOT / folder / "pipelines" / "shop.yaml").read_text()) for folder in ("docker", "include")
    )

    assert ours.pop("landing")["uri"].startswith(f"s3://{object_store.LANDING}/")
    assert ours == demos


def test_who_names_another_service_means_the_port_it_listens_on(services: dict[str, Any]) -> None:
    given = services["scheduler"]["environment"]
    master = json.loads(given["AIRFLOW_CONN_PENSTOCK_SPARK"])
    address = f"{master['host']}:{master['port']}"
    listening = services["spark-master"]["command"]

    assert services["spark-worker"]["command"][-1] == address == "spark://spark-master:7077"
    assert listening[listening.index("--host") + 1 :][0::2][:2] == ["spark-master", "7077"]
    assert given["PENSTOCK_STORE"] == "http://store:9878"
    assert "http://0.0.0.0:9878" in services["store"]["command"]
    assert given["AIRFLOW__METRICS__STATSD_HOST"] in services
    assert f"--statsd.listen-udp=:{given['AIRFLOW__METRICS__STATSD_PORT']}" in services["statsd"]["command"]


def test_airflows_services_are_the_components_of_the_local_stack(services: dict[str, Any]) -> None:
    assert {services[name]["command"][1] for name in AIRFLOW[1:]} == set(COMPONENTS)


def test_the_env_file_stays_out_of_the_image_and_of_git() -> None:
    assert (ROOT / ".dockerignore").read_text().splitlines()[1] == "*"
    assert ".env" in (ROOT / ".gitignore").read_text().splitlines()


def test_airflows_components_agree_on_executor_keys_and_connections(services: dict[str, Any]) -> None:
    shared = [
        {name: value for name, value in services[each]["environment"].items() if name != "AIRFLOW_ADMIN_PASSWORD"}
        for each in AIRFLOW
    ]

    assert all(each == shared[0] for each in shared)
    assert shared[0]["AIRFLOW__CORE__EXECUTOR"] == "LocalExecutor"
    assert shared[0]["AIRFLOW__API_AUTH__JWT_SECRET"]


def test_the_connections_are_those_that_a_pipeline_names_by_default(services: dict[str, Any]) -> None:
    default = Pipeline.model_validate({"name": "p", "tables": {"include": ["s.*"]}})
    named = {part.connection for part in (default.source, default.ledger, default.lake, default.spark)}
    given = services["scheduler"]["environment"]

    assert {f"AIRFLOW_CONN_{name.upper()}" for name in named} == {n for n in given if n.startswith("AIRFLOW_CONN_")}


def test_the_init_script_makes_the_pools_that_the_local_stack_has() -> None:
    script = (ROOT / "docker" / "init.sh").read_text()
    made = re.findall(r'^airflow pools set (\w+) (\d+) "(.+)"$', script, re.MULTILINE)

    assert {name: (int(slots), text) for name, slots, text in made} == POOLS


def test_what_the_image_copies_and_the_services_mount_is_there(compose: dict[str, Any]) -> None:
    copied = re.findall(r"^COPY --chown=penstock (\S+)", dockerfile(), re.MULTILINE)
    mounts = [mount for service in compose["services"].values() for mount in service.get("volumes", [])]
    folders = [mount.split(":")[0] for mount in mounts if mount.startswith("./")]
    volumes = {mount.split(":")[0] for mount in mounts if mount[0] not in ".$"}
    sent = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"}

    assert all((ROOT / path).exists() for path in [*copied, *folders])
    assert set(copied) == sent
    assert volumes == set(compose["volumes"])


@pytest.mark.skipif(shutil.which("docker-compose") is None, reason="docker-compose is not installed")
def test_docker_compose_accepts_the_file(tmp_path: Path) -> None:
    filled = tmp_path / "env"
    filled.write_text("".join(f"{name}={value or 'x'}\n" for name, value in env_example().items()))
    command = ["docker-compose", "--env-file", str(filled), "--file", str(ROOT / "docker-compose.yaml"), "config"]

    said = subprocess.run(command, capture_output=True, text=True, check=False)

    assert said.returncode == 0, said.stderr


@pytest.fixture(scope="module")
def fresh_server(new_server: Any, binaries16: Binaries) -> Iterator[dict[str, str]]:
    """A server of our own, because the scripts make roles and databases; what the image would give them."""
    server = new_server(binaries16)
    with server.connect() as connection:
        connection.execute("create database shop")
    yield {
        "PATH": f"{server.binaries.folder}{os.pathsep}{os.environ['PATH']}",
        "PGHOST": "127.0.0.1",
        "PGPORT": str(server.port),
        "PGPASSWORD": server.password,
        "POSTGRES_USER": "postgres",
        "POSTGRES_DB": "shop",
        "PENSTOCK_READER_PASSWORD": "reads",
        "AIRFLOW_DB_PASSWORD": "flies",
        "PENSTOCK_DB_PASSWORD": "keeps",
    }
    server.stop()


def run(script: str, environment: dict[str, str]) -> None:
    said = subprocess.run([ROOT / "docker" / script], env=environment, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr


def login(environment: dict[str, str], database: str, user: str, password: str) -> psycopg.Connection[Any]:
    return psycopg.connect(
        host=environment["PGHOST"], port=int(environment["PGPORT"]), dbname=database, user=user, password=password
    )


def test_the_source_script_makes_a_reader_that_may_replicate(fresh_server: dict[str, str]) -> None:
    run("source-init.sh", fresh_server)

    with login(fresh_server, "shop", "penstock_reader", "reads") as connection:
        row = connection.execute(
            "select rolreplication, rolsuper from pg_roles where rolname = current_user"
        ).fetchone()
    assert row == (True, False)


def test_the_control_script_makes_two_databases_that_let_their_owners_in(fresh_server: dict[str, str]) -> None:
    run("control-init.sh", fresh_server)

    with login(fresh_server, "airflow", "airflow", "flies") as connection:
        connection.execute("create table proof ()")
    with login(fresh_server, "penstock", "penstock", "keeps") as connection:
        connection.execute("create schema penstock")
    with pytest.raises(psycopg.OperationalError, match="permission denied"):
        login(fresh_server, "penstock", "airflow", "flies")

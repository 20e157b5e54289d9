"""The stack in containers, as far as it can be checked without containers: its file, its image, its scripts."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import psycopg
import pytest
import yaml
from cryptography.fernet import Fernet
from psycopg import sql

from penstock.config.model import Pipeline
from stack.airflow.airflow_server import COMPONENTS, POOLS
from stack.cluster import object_store, standalone
from stack.paths import Project
from stack.servers.binaries import Binaries
from stack.spark import spark_conf
from tests.container_image import IN_IMAGE, copied, dockerfile

ROOT = Project.here().root
AIRFLOW = ("init", "api-server", "scheduler", "dag-processor", "triggerer")
POSTGRES = ("source", "control")
SPARK = ("spark-master", "spark-worker")
OTHERS = {"postgres": "postgres", "prom/statsd-exporter": "65534"}
SECRET_NAME = re.compile(r"PASSWORD$|SECRET|_KEY$")
REFERENCE = re.compile(r"<secret:(\w+)>")
SECRETS = "/run/secrets/"
TABLES = 20  # published by the sample: the shop's sixteen, and pgbench's


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


def test_the_services_are_servers_store_spark_airflow_and_the_exporter_of_metrics(services: dict[str, Any]) -> None:
    assert set(services) == {*AIRFLOW, *POSTGRES, *SPARK, "store", "statsd"}


def test_the_source_writes_wal_for_logical_decoding_and_bounds_what_a_slot_keeps(services: dict[str, Any]) -> None:
    command = services["source"]["command"]

    assert "-cwal_level=logical" in command
    assert any(re.fullmatch(r"-cmax_slot_wal_keep_size=\d+GB", part) for part in command)


def test_one_service_builds_the_image_that_the_others_use(services: dict[str, Any]) -> None:
    ours = [service for service in services.values() if service["image"].startswith("penstock:")]

    assert [name for name, service in services.items() if "build" in service] == ["init"]
    assert len(ours) == len(services) - len([*POSTGRES, "statsd"])
    assert {service["image"] for service in ours} == {services["init"]["image"]}
    assert {service["pull_policy"] for service in ours} == {"never"}  # it is in no registry


def test_every_other_image_is_pinned_to_a_full_version(services: dict[str, Any]) -> None:
    base = re.search(r"^FROM (\S+)", dockerfile(), re.MULTILINE)
    images = {service["image"] for service in services.values()} - {services["init"]["image"]}

    assert base is not None
    for image in {*images, base[1]}:
        assert re.search(r":v?\d+(\.\d+)+", image), image


def test_no_file_of_the_image_names_an_architecture(services: dict[str, Any]) -> None:
    texts = [dockerfile(), json.dumps(services), *(path.read_text() for path in (ROOT / "docker").rglob("*.[sc]*"))]

    assert not [text for text in texts if re.search(r"amd64|x86.64|arm64", re.sub("(?m)^#.*$", "", text))]


def test_the_postgresql_image_is_new_enough_to_be_a_source(services: dict[str, Any]) -> None:
    match = re.fullmatch(r"postgres:16\.(\d+)-\w+", services["source"]["image"])

    assert match is not None
    assert int(match[1]) >= 11


def test_nothing_runs_as_root(services: dict[str, Any]) -> None:
    users = {service["image"].split(":")[0]: service["user"] for service in services.values() if "user" in service}

    assert users == OTHERS
    assert {service["image"].split(":")[0] for service in services.values()} == {*OTHERS, "penstock"}
    assert re.findall(r"^USER (\S+)", dockerfile(), re.MULTILINE) == ["penstock"]
    for service in services.values():
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]


def test_every_lasting_service_has_a_health_check(services: dict[str, Any]) -> None:
    assert {name for name, service in services.items() if "healthcheck" not in service} == {"init"}


def test_every_lasting_service_comes_back_and_has_a_bound_of_memory(services: dict[str, Any]) -> None:
    assert {name for name, service in services.items() if service["restart"] != "unless-stopped"} == {"init"}
    assert {name for name, service in services.items() if "mem_limit" not in service} == {"init"}


def test_the_log_of_every_service_is_rotated(services: dict[str, Any]) -> None:
    for name, service in services.items():
        assert service["logging"]["driver"] == "json-file", name
        assert re.fullmatch(r"\d+m", service["logging"]["options"]["max-size"]), name
        assert int(service["logging"]["options"]["max-file"]) > 1, name


def test_ports_are_published_on_loopback_only(services: dict[str, Any]) -> None:
    published = [port for service in services.values() for port in service.get("ports", [])]

    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_no_environment_holds_a_secret(services: dict[str, Any]) -> None:
    for service in services.values():
        for name, value in service.get("environment", {}).items():
            if SECRET_NAME.search(name):
                assert REFERENCE.fullmatch(value), name
            for password in re.findall(r'"password": "([^"]*)"|://\w+:([^@]*)@', value):
                assert REFERENCE.fullmatch("".join(password)), name
            if name.endswith("_FILE") and "secrets" in value:
                assert value.startswith(SECRETS), name


def test_each_service_gets_the_secrets_that_it_refers_to_and_no_others(services: dict[str, Any]) -> None:
    scripts = {name: (ROOT / "docker" / f"{name}-init.sh").read_text() for name in POSTGRES}
    for name, service in services.items():
        referred = REFERENCE.findall(json.dumps(service.get("environment", {})))
        referred += re.findall(rf"{SECRETS}(\w+)", json.dumps(service.get("environment", {})))
        referred += re.findall(r"(?:/run/secrets\}|\$SECRETS)/(\w+)", scripts.get(name, ""))

        assert set(referred) == set(service.get("secrets", [])), name


def test_who_refers_to_a_secret_is_started_by_the_program_that_reads_it(services: dict[str, Any]) -> None:
    wrapped = {path.name for path in (ROOT / "docker" / "bin").iterdir()}
    for name, service in services.items():
        if REFERENCE.search(json.dumps(service.get("environment", {}))):
            program = service["command"][0]

            assert program in wrapped or "with-secrets" in (ROOT / program).read_text(), name


def made_secrets(folder: Path) -> dict[str, str]:
    subprocess.run([ROOT / "docker" / "new-secrets.sh", folder], stdout=subprocess.DEVNULL, check=True)
    return {path.name: path.read_text().strip() for path in folder.iterdir()}


def test_new_secrets_makes_each_secret_of_the_file_once(compose: dict[str, Any], tmp_path: Path) -> None:
    made, other = made_secrets(tmp_path / "one"), made_secrets(tmp_path / "two")
    again = made_secrets(tmp_path / "one")

    assert {name: each["file"] for name, each in compose["secrets"].items()} == {n: f"./.secrets/{n}" for n in made}
    assert again == made
    assert len({*made.values(), *other.values()}) == 2 * len(made)
    assert all(re.fullmatch(r"[\w=-]{32,}", value) for value in made.values())
    assert Fernet(made["airflow_fernet"]).encrypt(b"")


def test_new_secrets_keeps_what_is_there_and_lets_containers_read_it(tmp_path: Path) -> None:
    (tmp_path / "penstock_db").write_text("mine")

    made = made_secrets(tmp_path)

    assert made["penstock_db"] == "mine"
    assert tmp_path.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir() if path.name != "penstock_db"} == {0o444}


def with_secrets(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    program = [
        ROOT / "docker" / "bin" / "with-secrets",
        "python3",
        "-c",
        "import json, os; print(json.dumps(dict(os.environ)))",
    ]
    given = {"PATH": os.environ["PATH"], "PENSTOCK_SECRETS": str(folder), **environment}
    return subprocess.run(program, env=given, capture_output=True, text=True, check=False)


def test_a_secret_is_quoted_as_its_place_wants_it(tmp_path: Path) -> None:
    hostile = 'a"b\\c@/ü {}'
    (tmp_path / "key").write_text(hostile + "\n")

    said = with_secrets(
        tmp_path, PLAIN="<secret:key>", JSON='{"password": "<secret:key>"}', URL="x://u:<secret:key>@h/d", OTHER="<key>"
    )

    got = json.loads(said.stdout)
    assert got["PLAIN"] == hostile
    assert json.loads(got["JSON"]) == {"password": hostile}
    assert unquote(urlsplit(got["URL"]).password or "") == hostile
    assert got["OTHER"] == "<key>"


def test_a_secret_that_is_not_there_is_named_with_what_to_do(tmp_path: Path) -> None:
    said = with_secrets(tmp_path, AIRFLOW__CORE__FERNET_KEY="<secret:airflow_fernet>")

    assert said.returncode == 1
    assert said.stderr.startswith("with-secrets: expected the secret airflow_fernet of AIRFLOW__CORE__FERNET_KEY in")
    assert "docker/new-secrets.sh" in said.stderr


def test_the_example_gives_each_variable_the_value_that_it_has_without() -> None:
    used = dict(re.findall(r"(?<!\$)\$\{(\w+):-([^}]*)\}", (ROOT / "docker-compose.yaml").read_text()))

    assert env_example() == used
    assert not any(SECRET_NAME.search(name) for name in used)


def test_spark_holds_no_secret_of_its_own(services: dict[str, Any]) -> None:
    assert all(set(services[name]["environment"]) == {"SPARK_DAEMON_MEMORY"} for name in SPARK)


def test_sparks_settings_are_those_of_a_cluster_and_lead_executors_back_to_the_driver(services: dict[str, Any]) -> None:
    lines = (ROOT / "docker" / "spark-defaults.conf").read_text().splitlines()
    found = dict(line.split(" ", 1) for line in lines if not line.startswith("#"))
    project = Project(Path(IN_IMAGE), Path(IN_IMAGE) / ".local")
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


def test_the_store_keeps_its_files_below_an_absolute_folder_because_it_lists_none_below_a_relative_one() -> None:
    given = object_store.properties(
        "http://store", Path(".local/store"), dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "x")
    )

    assert f"jclouds.filesystem.basedir={ROOT / '.local' / 'store'}" in given.splitlines()


def test_airflows_services_are_the_components_of_the_local_stack(services: dict[str, Any]) -> None:
    assert {services[name]["command"][1] for name in AIRFLOW[1:]} == set(COMPONENTS)


def test_secrets_and_the_env_file_stay_out_of_the_image_and_of_git() -> None:
    assert (ROOT / ".dockerignore").read_text().splitlines()[1] == "*"
    assert {".env", ".secrets/"} <= set((ROOT / ".gitignore").read_text().splitlines())


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

    named.add("penstock_reader")  # of the sample's pipelines
    assert {f"AIRFLOW_CONN_{name.upper()}" for name in named} == {n for n in given if n.startswith("AIRFLOW_CONN_")}


def test_the_init_script_makes_the_pools_that_the_local_stack_has() -> None:
    script = (ROOT / "docker" / "init.sh").read_text()
    made = re.findall(r'^airflow pools set (\w+) (\d+) "(.+)"$', script, re.MULTILINE)

    assert {name: (int(slots), text) for name, slots, text in made} == POOLS


def test_what_the_image_copies_and_the_services_mount_is_there(compose: dict[str, Any]) -> None:
    mounts = [mount for service in compose["services"].values() for mount in service.get("volumes", [])]
    folders = [mount.split(":")[0] for mount in mounts if mount.startswith("./")]
    volumes = {mount.split(":")[0] for mount in mounts if mount[0] not in ".$"}
    sent = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"}

    assert all((ROOT / path).exists() for path in [*copied(), *folders])
    assert set(copied()) == sent
    assert volumes == set(compose["volumes"])


@pytest.mark.skipif(shutil.which("docker-compose") is None, reason="docker-compose is not installed")
def test_docker_compose_accepts_the_file(tmp_path: Path) -> None:
    for place in ([], ["--env-file", str(ROOT / ".env.example")]):
        command = ["docker-compose", *place, "--file", str(ROOT / "docker-compose.yaml"), "config", "--quiet"]
        said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

        assert (said.returncode, said.stdout + said.stderr) == (0, "")


@pytest.fixture(scope="module")
def fresh_server(
    new_server: Any, binaries16: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """A server of our own, because the scripts make roles and databases; what the image would give them."""
    mounted = tmp_path_factory.mktemp("mounted")
    for name, value in {
        "penstock_capture": "decodes",
        "penstock_reader": "reads",
        "airflow_db": "flies",
        "penstock_db": "it's kept",
    }.items():
        (mounted / name).write_text(value)
    for name in ("demo/schema.sql", "demo/content.sql", "docker/publish.sql"):
        shutil.copy(ROOT / name, mounted)
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
        "PENSTOCK_SECRETS": str(mounted),
        "PENSTOCK_SAMPLE": str(mounted),
    }
    server.stop()


def run(script: str, environment: dict[str, str]) -> None:
    said = subprocess.run([ROOT / "docker" / script], env=environment, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr


def login(environment: dict[str, str], database: str, user: str, password: str) -> psycopg.Connection[Any]:
    return psycopg.connect(
        host=environment["PGHOST"], port=int(environment["PGPORT"]), dbname=database, user=user, password=password
    )


def test_the_source_script_makes_a_reader_of_a_shop_that_its_owner_published(fresh_server: dict[str, str]) -> None:
    run("source-init.sh", fresh_server)

    with login(fresh_server, "shop", "penstock_reader", "reads") as connection:
        role = connection.execute(
            "select rolreplication, rolsuper from pg_roles where rolname = current_user"
        ).fetchone()
        tables = connection.execute(
            "select schemaname, tablename, tableowner from pg_publication_tables join pg_tables using (schemaname, tablename) "
            "where pubname = 'penstock_shop'"
        ).fetchall()
        for schema, name, _ in tables:
            connection.execute(sql.SQL("select from {}").format(sql.Identifier(schema, name)))
        orders = connection.execute("select count(*) from shop.orders").fetchone()
    assert role == (False, False)
    with login(fresh_server, "shop", "penstock_capture", "decodes") as connection:
        found = connection.execute(
            "select rolreplication, rolsuper from pg_roles where rolname = current_user"
        ).fetchone()
    assert found == (True, False)
    assert len(tables) == TABLES
    assert {owner for _, _, owner in tables} == {"shop_owner"}
    assert orders == (3000,)


def test_the_control_script_makes_two_databases_that_let_their_owners_in(fresh_server: dict[str, str]) -> None:
    run("control-init.sh", fresh_server)

    with login(fresh_server, "airflow", "airflow", "flies") as connection:
        connection.execute("create table proof ()")
    with login(fresh_server, "penstock", "penstock", "it's kept") as connection:
        connection.execute("create schema penstock")
    with pytest.raises(psycopg.OperationalError, match="permission denied"):
        login(fresh_server, "penstock", "airflow", "flies")

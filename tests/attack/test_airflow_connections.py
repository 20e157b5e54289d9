"""Connections under Airflow go through the Postgres provider's own hook; real servers take what comes out of it."""

import os
import pickle
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg import sql

from penstock.compare.lake_reader import lake_reader
from penstock.config.connections import Connection
from penstock.errors import ConfigError, PenstockError
from penstock.ledger.session import connect as connect_to_ledger
from penstock.source import session
from penstock.source.arrow import connect_arrow
from stack import ports
from stack.servers import lake_catalog
from stack.servers.postgres import Database
from tests.pipeline_env import airflow_connection

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTRAS_OF_AIRFLOW = {
    "aws_conn_id": "aws_default",
    "client_encoding": "latin1",
    "cluster-identifier": "c",
    "cursor": "dictcursor",
    "enable_log_db_messages": True,
    "log_db_messages": True,
    "iam": False,
    "redshift": False,
    "redshift-serverless": False,
    "region_name": "eu-central-1",
    "sqlalchemy_query": {"application_name": "x"},
    "sqlalchemy_scheme": "postgresql+psycopg2",
    "workgroup-name": "w",
    "application_name": "someone",
}
EXTRAS_OF_LIBPQ = {"sslmode": "disable", "keepalives": True, "keepalives_idle": 20, "options": "-c work_mem=7MB"}

Resolve = Callable[..., Connection]
Define = Callable[..., None]


@pytest.fixture
def define(database16: Database, monkeypatch: pytest.MonkeyPatch) -> Define:
    """Define the connection `src` in the environment, where Airflow and the command line both look."""

    def define(extra: Any = None, **fields: Any) -> None:
        monkeypatch.setenv("AIRFLOW_CONN_SRC", airflow_connection(database16, **{"extra": extra or {}, **fields}))

    return define


@pytest.fixture(params=["airflow", "command line"])
def resolve(request: pytest.FixtureRequest) -> Resolve:
    """Resolve the connection `src` as a task does, and as the command line does."""

    def resolve() -> Connection:
        if request.param == "airflow":
            from penstock.orchestration.connections import connection  # noqa: PLC0415  # after Airflow's home is set

            return connection("src")
        return Connection.from_airflow_environment("src", os.environ)

    return resolve


def work_mem(connection: Connection) -> set[str]:
    """Log in with every driver that Penstock uses, and return the setting that the extra `options` makes."""
    with session.connect(connection, what="test") as source:
        seen = {source.execute("show work_mem").fetchone()}
    with connect_to_ledger(connection, "test") as ledger:
        seen.add(ledger.execute("show work_mem").fetchone())
    with connect_arrow(connection, what="test", settings={}) as arrow:
        seen |= set(arrow.ask(sql.SQL("select current_setting('work_mem')")))
    return {row[0] for row in seen if row}


def test_extras_of_airflow_reach_no_driver_and_those_of_libpq_do(define: Define, resolve: Resolve) -> None:
    define(EXTRAS_OF_AIRFLOW | EXTRAS_OF_LIBPQ)

    assert resolve().options == {
        "sslmode": "disable",
        "keepalives": "1",
        "keepalives_idle": "20",
        "options": "-c work_mem=7MB",
    }
    assert work_mem(resolve()) == {"7MB"}


@pytest.mark.parametrize(
    ("extra", "fields", "words"),
    [
        ({}, {"conn_type": "mysql"}, "expected the type postgres, got 'mysql' instead; change the type"),
        ({}, {"conn_type": "redshift"}, "expected the type postgres"),
        ({"sslmod": "require"}, {}, "did you mean 'sslmode'"),
        ({"sslmode": ["require"]}, {}, "expected a text as the extra sslmode"),
        ({"target_session_attrs": "primry"}, {}, "as target_session_attrs"),
        ({"port": "5432,5433,5434"}, {"host": "a,b"}, "one for each host, got 3"),
        ("{not json", {}, "pars"),
        ({}, {"login": None}, "expected a login"),
        ({}, {"schema": None}, "expected a database name"),
    ],
)
def test_what_is_no_postgresql_connection_is_refused_by_both(
    define: Define, resolve: Resolve, extra: Any, fields: dict[str, Any], words: str
) -> None:
    define(extra, **fields)

    with pytest.raises(ConfigError, match=words) as caught:
        resolve()
    assert caught.value.slug == "connection-missing"
    assert "only-for-tests" not in str(caught.value)


def test_a_connection_that_airflow_does_not_know_is_named_with_the_next_step() -> None:
    from penstock.orchestration.connections import connection  # noqa: PLC0415

    with pytest.raises(ConfigError, match=r"named nowhere_at_all.*define it in Airflow's UI"):
        connection("nowhere_at_all")


# --- several hosts ---------------------------------------------------------------------------------


@pytest.fixture
def two_hosts(define: Define, database16: Database) -> Connection:
    """A dead port before the living one; the ports differ, so they stand in the extra, as for Airflow's hook."""
    define(
        {
            "port": f"{ports.choose()},{database16.server.port}",
            "options": "-c work_mem=7MB",
            "target_session_attrs": "primary",
        },
        host="127.0.0.1,localhost",
        port=None,
    )
    from penstock.orchestration.connections import connection  # noqa: PLC0415

    return connection("src")


def test_of_several_hosts_the_living_one_is_found_by_every_driver(two_hosts: Connection) -> None:
    assert two_hosts == Connection.from_airflow_environment("src", os.environ)
    assert Connection.from_prefix("SOURCE", two_hosts.environment("source")) == replace(two_hosts, id="source")
    assert work_mem(two_hosts) == {"7MB"}


def test_of_several_hosts_the_lake_is_read_from_the_living_one(two_hosts: Connection, database16: Database) -> None:
    lake_catalog.create_tables(database16.dsn())

    with lake_reader("lake", two_hosts) as lake:
        assert lake.catalog.list_namespaces() == []


@pytest.mark.slow
@pytest.mark.spark
def test_of_several_hosts_spark_finds_the_living_one(two_hosts: Connection, spark: "SparkSession") -> None:
    read = spark.read.format("jdbc").option("url", two_hosts.jdbc_url()).option("driver", "org.postgresql.Driver")
    found = read.option("user", two_hosts.user).option("password", two_hosts.secret).option("query", "select 42 as n")

    assert "targetServerType=primary" in two_hosts.jdbc_url()
    assert found.load().collect()[0]["n"] == 42


# --- tokens ----------------------------------------------------------------------------------------


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, database16: Database) -> Iterator[list[tuple[Any, ...]]]:
    """Amazon's answer: a new token at every request, which from then on is the role's only password. All else is real."""
    asked: list[tuple[Any, ...]] = []
    role = f"iam_{database16.name}"
    set_password = sql.SQL("alter role {} login password {}")

    class Client:
        def generate_db_auth_token(self, host: str, port: int, user: str) -> str:
            asked.append((host, port, user))
            token = f"token/{len(asked)}?X-Amz-Expires=900&x=%2F"
            with psycopg.connect(database16.dsn(), autocommit=True) as admin:
                admin.execute(set_password.format(sql.Identifier(role), sql.Literal(token)))
            return token

    class AwsBaseHook:
        def __init__(self, aws_conn_id: str, client_type: str) -> None:
            assert (aws_conn_id, client_type) == ("my_aws", "rds")
            self.conn = Client()

    module = ModuleType("airflow.providers.amazon.aws.hooks.base_aws")
    module.AwsBaseHook = AwsBaseHook  # type: ignore[attr-defined]
    for name in ("amazon", "amazon.aws", "amazon.aws.hooks"):
        monkeypatch.setitem(sys.modules, f"airflow.providers.{name}", ModuleType(f"airflow.providers.{name}"))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    with psycopg.connect(database16.dsn(), autocommit=True) as admin:
        admin.execute(sql.SQL("create role {}").format(sql.Identifier(role)))
    yield asked
    with psycopg.connect(database16.dsn(), autocommit=True) as admin:
        admin.execute(sql.SQL("drop role {}").format(sql.Identifier(role)))


def test_every_login_has_a_token_of_its_own_because_tokens_last_for_minutes(
    define: Define, aws: list[tuple[Any, ...]], database16: Database
) -> None:
    from penstock.orchestration.connections import connection  # noqa: PLC0415

    role = f"iam_{database16.name}"
    define({"iam": True, "aws_conn_id": "my_aws", "cursor": "dictcursor"}, login=role, password=None)
    found = pickle.loads(pickle.dumps(connection("src")))
    before = len(aws)

    for _ in range(2):  # the second login would fail with the first one's token
        with session.connect(found, what="test") as source:
            assert source.execute("select current_user").fetchone() == (role,)
    assert len(aws) == before + 2
    assert set(aws) == {("127.0.0.1", database16.server.port, role)}
    assert "token" not in repr(found)


def test_a_token_without_amazons_provider_is_refused_with_the_next_step(define: Define) -> None:
    from penstock.orchestration.connections import connection  # noqa: PLC0415

    define({"iam": True}, password=None)

    with pytest.raises(ConfigError, match=r"pip install 'apache-airflow-providers-postgres\[amazon\]'"):
        connection("src")


def test_a_token_that_the_cloud_does_not_give_is_asked_for_again_by_a_retry(
    define: Define, aws: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock.orchestration.connections import connection  # noqa: PLC0415

    define({"iam": True, "aws_conn_id": "another"}, password=None)  # which the hook above does not know

    with pytest.raises(PenstockError, match="expected a token for the connection 'src'") as caught:
        connection("src")
    assert caught.value.directive.name == "RETRY"


def test_the_command_line_has_no_token_and_says_so(define: Define) -> None:
    define({"iam": True}, password=None)

    with pytest.raises(ConfigError, match="a token that only Airflow's hook can ask for"):
        Connection.from_airflow_environment("src", os.environ)

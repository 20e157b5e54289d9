"""Real servers for the tests, started when the first test asks for them and stopped at the session's end.

`postgres15` (Debian's programs, skipped where they are missing) and `postgres16` (the embedded ones) are one
server each for the whole session; `postgres` runs a test on both; `database` is an empty database of the
test's own. A test that stops or kills a server makes its own with `new_server`.
"""

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from stack import ports
from stack.account import Account, reachable_folder
from stack.binaries import Binaries, from_wheel
from stack.postgres import Database, Server

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
HASTY = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}

NewServer = Callable[..., Server]


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
        return server

    yield start
    for server in made:
        server.remove()


@pytest.fixture(scope="session")
def binaries16(servers_home: Path) -> Binaries:
    return from_wheel(servers_home)


@pytest.fixture(scope="session")
def binaries15() -> Binaries:
    if not DEBIAN_15.exists():
        pytest.skip(NO_15)
    return Binaries.at(DEBIAN_15)


@pytest.fixture(scope="session")
def postgres16(new_server: NewServer, binaries16: Binaries) -> Server:
    """The embedded PostgreSQL 16, shared by the session: don't stop it, don't change its settings."""
    return new_server(binaries16, HASTY)


@pytest.fixture(scope="session")
def postgres15(new_server: NewServer, binaries15: Binaries) -> Server:
    """Debian's PostgreSQL 15, shared by the session: don't stop it, don't change its settings."""
    return new_server(binaries15, HASTY)


@pytest.fixture(scope="session", params=["postgres15", "postgres16"])
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

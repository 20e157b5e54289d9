"""However many slots and tables a server has, a health check asks it equally little."""

from collections.abc import Iterator
from time import perf_counter

import pytest

from penstock.source import session
from stack.servers.binaries import Binaries
from stack.servers.postgres import Server
from tests.conftest import HASTY, NewServer
from tests.flow.health.conftest import NewWatched


@pytest.fixture
def spacious16(new_server: NewServer, binaries16: Binaries) -> Iterator[Server]:
    """A server with room for 250 slots."""
    server = new_server(binaries16, {**HASTY, "max_replication_slots": "250"})
    yield server
    server.stop()


def test_200_slots_and_1000_tables_take_as_many_statements_as_one(
    spacious16: Server, watched_on: NewWatched, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Says how long the whole check took, which bounds the source's part; a busy machine is no reason to fail."""
    watched = watched_on(spacious16)
    counted: list[str] = []
    execute = session.SourceSession.cursor

    def counting(self: session.SourceSession, *arguments: object, **named: object) -> object:
        counted.append("statement")
        return execute(self, *arguments, **named)

    monkeypatch.setattr(session.SourceSession, "cursor", counting)
    watched.look()
    few = len(counted)
    with spacious16.connect(watched.env.source.name) as connection:
        connection.execute(
            "do $$ begin for n in 1..1000 loop execute format('create table many_%s (id int primary key)', n); end loop; end $$"
        )
        for number in range(199):
            connection.execute(f"select pg_create_physical_replication_slot('many_{number}', true)".encode())
    counted.clear()

    began = perf_counter()
    verdict = watched.check()
    with capsys.disabled():
        print(f"\n200 slots, 1,000 tables: {perf_counter() - began:.2f} s for a health check")  # noqa: T201  # said, not asserted

    assert len(verdict.facts.samples) == 200
    assert len(counted) == few

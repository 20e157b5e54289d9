"""Where the WAL ends: as far as it is flushed, and as far as it is written."""

from __future__ import annotations

import psycopg

from penstock.source import server_info
from penstock.source.session import SourceSession


def test_a_command_that_was_committed_asynchronously_lies_below_the_end_of_the_wal(
    conn: SourceSession, writer: psycopg.Connection
) -> None:
    writer.execute("set synchronous_commit = off")
    for number in range(20):
        before = server_info.inserted(conn)
        writer.execute(f"create table t{number} (id int)")

        assert before < server_info.inserted(conn)
        assert server_info.flushed(conn) <= server_info.inserted(conn)

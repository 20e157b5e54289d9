"""Read one window of the slot: the messages of pgoutput as the server made them, without moving the slot.

The same window can be peeked again and again with the same bytes. Only `data` is read: BEGIN carries position,
time and xid. The server works out the whole result before it sends the first row; our memory is bounded by the batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from psycopg import sql
from psycopg.rows import class_row

from penstock.connections import Connection
from penstock.errors import SourceError
from penstock.lsn import Lsn
from penstock.source.arrow import ArrowSession, connect_arrow
from penstock.source.session import SourceSession, connect, pin, translating
from penstock.sql import load

_PROTOCOL = "1"  # streaming and two-phase, which later versions are for, have no use in a peek
_SKIPPED = "55000"  # the SQLSTATE of the warning "skipped loading publication"


def peek(
    source: Connection,
    *,
    slot: str,
    publication: str,
    upto: Lsn,
    statement_timeout: int,
    work_mem: int,
    batch_bytes: int,
    origin_none: bool = False,
    what: str = "peek",
) -> Iterator[pa.BinaryArray]:
    """Yield the messages of the window that ends at `upto`, in order, in arrays of about `batch_bytes`.

    `upto` must be flushed already. `statement_timeout` is in seconds and counts until the last row is taken;
    `work_mem` is in bytes, for decoding on the server. `origin_none` (16+) leaves out what came from another server.
    Close the iterator to stop early. Raises SourceError.
    """
    memory = f"{work_mem // 1024}kB"
    settings = {
        "statement_timeout": f"{statement_timeout}s",
        "work_mem": memory,
        "logical_decoding_work_mem": memory,
    }
    query = peek_query(slot, publication, upto, origin_none=origin_none)
    with connect_arrow(source, what=what, settings=settings) as session:
        if not _was_always_there(session, slot, publication):
            _refuse_skipped(source, query, settings, what)
        for batch in session.stream(query, batch_bytes):
            yield batch.column(0)


@dataclass(frozen=True, slots=True)
class Transaction:
    """Say what one transaction of a window holds: its 32-bit id, its commit's LSN, its largest message in bytes, its tables."""

    xid: int
    lsn: int
    largest: int
    oids: list[int]


def decodes(conn: SourceSession, slot: str, publication: str, upto: Lsn, *, origin_none: bool = False) -> bool:
    """Tell whether the server's limits allow the window that ends at `upto`; takes as long as a peek. Raises SourceError."""
    query = sql.SQL("select count(*) from ({}) as peeked").format(
        peek_query(slot, publication, upto, origin_none=origin_none)
    )
    try:
        conn.run(query)
    except SourceError as error:
        if error.slug != "decoding-limit":
            raise
        return False
    return True


def transactions(
    conn: SourceSession, slot: str, publication: str, upto: Lsn, *, origin_none: bool = False
) -> list[Transaction]:
    """Say which transactions the window that ends at `upto` holds, in the order of their commits, without their values.

    It is decoded in the types' binary form, in which a bytea takes half of the room. Raises SourceError.
    """
    call = peek_query(slot, publication, upto, origin_none=origin_none, binary=True)
    query = sql.SQL(load("source/transactions")).format(peek=call)
    with translating(conn.place), conn.cursor(row_factory=class_row(Transaction)) as cursor:
        return cursor.execute(query).fetchall()


def peek_query(
    slot: str, publication: str, upto: Lsn, *, origin_none: bool = False, binary: bool = False
) -> sql.Composed:
    """Compose the query; the publication's name is quoted twice, as an identifier inside a literal."""
    options = {
        "proto_version": _PROTOCOL,
        "publication_names": sql.Identifier(publication).as_string(None),
        "messages": "true",
        **({"origin": "none"} if origin_none else {}),
        **({"binary": "true"} if binary else {}),
    }
    return sql.SQL("select {}data from pg_logical_slot_peek_binary_changes({}, {}::pg_lsn, null, {})").format(
        sql.SQL("xid, " if binary else ""),
        sql.Literal(slot),
        sql.Literal(str(upto)),
        sql.SQL(", ").join(sql.Literal(word) for option in options.items() for word in option),
    )


def _was_always_there(session: ArrowSession, slot: str, publication: str) -> bool:
    query = sql.SQL(load("source/publication_is_older"))
    ((was_there,),) = session.rows(query.format(publication=sql.Literal(publication), slot=sql.Literal(slot)))
    return bool(was_there)


def _refuse_skipped(source: Connection, query: sql.Composed, settings: Mapping[str, str], what: str) -> None:
    """Decode the window once for its warnings; raise SourceError("publication-missing") when changes were skipped.

    From 18 on the server leaves out, with a mere warning, what it decodes at a place of the WAL where the publication
    did not exist. ADBC drops warnings, so another driver has to look; only while the publication is young.
    """
    skipped: list[str | None] = []
    with connect(source, what=what) as conn:
        conn.add_notice_handler(
            lambda said: skipped.append(said.message_primary) if said.sqlstate == _SKIPPED else None
        )
        pin(conn, settings)
        with translating(conn.place):
            conn.execute(sql.SQL("select count(*) from ({}) as peeked").format(query))
    if skipped:
        raise SourceError(
            "publication-missing",
            f"expected {source.address} to have the publication at every position of the WAL that is read, "
            f"got a warning: {skipped[0]}; changes were skipped: copy the tables anew",
        )

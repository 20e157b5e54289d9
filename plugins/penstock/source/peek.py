"""Read one window of the slot: the messages of pgoutput as the server made them, without moving the slot.

The same window can be peeked again and again with the same bytes. Only `data` is read: BEGIN carries position,
time and xid. The server works out the whole result before it sends the first row; our memory is bounded by the batch, or by
one large message: that comes in pieces, for libpq and the driver would hold it three times at once.
"""

from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from psycopg import sql

from penstock.config.connections import Connection
from penstock.config.model import Capture
from penstock.errors import SourceError
from penstock.lsn import Lsn
from penstock.shapes.ddl_message import MOST_BYTES, PREFIX
from penstock.source.arrow import ArrowSession, connect_arrow
from penstock.source.session import SourceSession, composed, connect, pin

_PROTOCOL = "1"  # streaming and two-phase, which later versions are for, have no use in a peek
LARGE = 16 << 20
"""Bytes from which a message is fetched in pieces, and stands alone in its array."""
_PIECE = 4 << 20
_SKIPPED = "55000"  # the SQLSTATE of the warning "skipped loading publication"


class Logical(Enum):
    """Say which logical messages a peek brings: whoever may connect to the source may write them, of any size.

    A transaction that has nothing else is sent only where the server is asked for them.
    """

    UNSENT = "unsent"
    PROVED = "proved"
    """Those that the event trigger wrote, which must be installed (`source.ddl_trigger`); all others stay on the server."""
    PASSED_OVER = "passed over"
    """None, but the transactions are those that come with the proved ones."""


@dataclass(frozen=True, slots=True)
class Request:
    """Say what a peek asks for: what `slot` holds of a publication up to `upto`, which must be flushed already.

    `origin_none` (16+) leaves out what came from another server.
    """

    slot: str
    publication: str
    upto: Lsn
    origin_none: bool = False
    logical: Logical = Logical.UNSENT

    def query(self, *, binary: bool = False) -> sql.Composed:
        """Compose the query; the publication's name is quoted twice, as an identifier inside a literal."""
        options = {
            "proto_version": _PROTOCOL,
            "publication_names": sql.Identifier(self.publication).as_string(None),
            "messages": "false" if self.logical is Logical.UNSENT else "true",
            **({"origin": "none"} if self.origin_none else {}),
            **({"binary": "true"} if binary else {}),
        }
        return sql.SQL("select {}data from pg_logical_slot_peek_binary_changes({}, {}::pg_lsn, null, {}) {}").format(
            sql.SQL("xid, " if binary else ""),
            sql.Literal(self.slot),
            sql.Literal(str(self.upto)),
            sql.SQL(", ").join(sql.Literal(word) for option in options.items() for word in option),
            _of_messages(self.logical),
        )

    def counted(self) -> sql.Composed:
        """Compose a query that decodes all of it and returns one number."""
        return sql.SQL("select count(*) from ({}) as peeked").format(self.query())


def peek(source: Connection, request: Request, limits: Capture, *, what: str = "peek") -> Iterator[pa.BinaryArray]:
    """Yield the messages of a window, in order, in arrays of about `batch_bytes` of the limits; a large one alone.

    `statement_timeout` of the limits counts until the last row is taken. Close the iterator to stop early. Raises SourceError.
    """
    chosen = settings(limits)
    with connect_arrow(source, what=what, settings=chosen) as session:
        if not was_always_there(session, request):
            _refuse_skipped(source, request, chosen, what)
        with closing(large(source, request, what, chosen)) as apart:
            yield from with_large(session, request, limits.batch_bytes, apart)


def settings(limits: Capture) -> dict[str, str]:
    """Return the settings of a session that peeks."""
    memory = f"{limits.work_mem // 1024}kB"
    return {
        "statement_timeout": f"{limits.statement_timeout}s",
        "work_mem": memory,
        "logical_decoding_work_mem": memory,
    }


def with_large(
    session: ArrowSession, request: Request, batch_bytes: int, apart: Iterator[pa.BinaryArray]
) -> Iterator[pa.BinaryArray]:
    """Yield the messages of a window, those that are large by themselves from `apart`."""
    small = sql.SQL("select case when octet_length(data) < {} then data end as data from ({}) as peeked")
    missing = False
    for batch in session.stream(small.format(sql.Literal(LARGE), request.query()), batch_bytes):
        missing = missing or batch.column(0).null_count > 0
        yield from _whole(batch.column(0), apart, session.place)
    if missing and next(apart, None) is not None:
        raise _other(session.place)


def _whole(messages: pa.BinaryArray, large: Iterator[pa.BinaryArray], place: str) -> Iterator[pa.BinaryArray]:
    """Yield the messages, with the next large one wherever NULL stands for it."""
    start = 0
    for number in np.flatnonzero(messages.is_null()).tolist() if messages.null_count else ():
        if number > start:
            yield messages.slice(start, number - start)
        alone = next(large, None)
        if alone is None:
            raise _other(place)
        yield alone
        del alone  # the next one comes before this name would mean that
        start = number + 1
    if start < len(messages):
        yield messages.slice(start)


def large(
    source: Connection, request: Request, what: str, settings: Mapping[str, str]
) -> Generator[pa.BinaryArray, None, None]:
    """Yield the large messages of the window, each in an array of its own; asked for the first, decodes it once more."""
    sizes = {"large": sql.Literal(LARGE), "piece": sql.Literal(_PIECE)}
    pieces = composed("peek/large_messages", peek=request.query(), **sizes)
    with connect_arrow(source, what=what, settings=settings) as session:
        buffer, filled = np.empty(0, np.uint8), 0
        for batch in session.stream(pieces, _PIECE):
            for size, piece in zip(*batch.columns, strict=True):
                if filled == 0:
                    buffer = np.empty(size.as_py(), np.uint8)
                part = np.frombuffer(piece.as_buffer(), np.uint8)
                buffer[filled : filled + len(part)] = part
                filled += len(part)
                if filled == len(buffer):
                    alone, buffer, filled = _array(buffer), np.empty(0, np.uint8), 0
                    yield alone
                    del alone


def _array(message: NDArray[np.uint8]) -> pa.BinaryArray:
    offsets = np.array([0, len(message)], np.int32)
    return pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(offsets), pa.py_buffer(message)])


def _other(place: str) -> SourceError:
    return SourceError(
        "source-error",
        f"expected {place} to decode the window alike twice, got another number of large messages; "
        "nothing of it was staged: capture again",
    )


@dataclass(frozen=True, slots=True)
class Transaction:
    """Say what one transaction of a window holds: its 32-bit id, its commit's LSN, its largest message in bytes, its tables.

    `committed` is its time of commit as the source claims it, in microseconds since 2000-01-01 UTC.
    """

    xid: int
    lsn: int
    committed: int
    largest: int
    oids: list[int]


def decodes(conn: SourceSession, request: Request) -> bool:
    """Return whether the server's limits allow the window; takes as long as a peek. Raises SourceError."""
    try:
        conn.run(request.counted())
    except SourceError as error:
        if error.slug != "decoding-limit":
            raise
        return False
    return True


def transactions(conn: SourceSession, request: Request) -> list[Transaction]:
    """Say which transactions the window holds, in the order of their commits, without their values.

    It is decoded in the types' binary form, in which a bytea takes half of the room. Raises SourceError.
    """
    return conn.records(Transaction, composed("peek/transactions", peek=request.query(binary=True)))


def _of_messages(logical: Logical) -> sql.Composable:
    match logical:
        case Logical.UNSENT:
            return sql.SQL("")
        case Logical.PASSED_OVER:
            return composed("peek/passed_over")
    prefix = PREFIX.encode() + b"\0"
    content = 1 + 1 + 1 + 8 + len(prefix) + 4  # substr counts from 1
    numbers = {"most": content - 1 + MOST_BYTES, "size": len(prefix), "content": content}
    return composed("peek/proved", prefix=sql.Literal(prefix), **{name: sql.Literal(n) for name, n in numbers.items()})


def was_always_there(session: ArrowSession, request: Request) -> bool:
    """Return whether the server can decode all of the window with this publication."""
    names = {"publication": sql.Literal(request.publication), "slot": sql.Literal(request.slot)}
    ((was_there,),) = session.ask(composed("peek/publication_is_older", **names))
    return bool(was_there)


def _refuse_skipped(source: Connection, request: Request, settings: Mapping[str, str], what: str) -> None:
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
        conn.run(request.counted())
    if skipped:
        raise SourceError(
            "publication-missing",
            f"expected {source.address} to have the publication at every position of the WAL that is read, "
            f"got a warning: {skipped[0]}; changes were skipped: copy the tables again",
        )

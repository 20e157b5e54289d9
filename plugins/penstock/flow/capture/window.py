"""One window of the slot: planned in the ledger, and turned into landing files by pull, decode and write, overlapped in threads.

Every relation shape gets its own file. Nothing here decides anything: it moves bytes, in bounded memory,
and says what it wrote. Of rows that are large by themselves, one is in memory at a time: each step releases what it has
handed on before it asks for more.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from time import monotonic

import pyarrow as pa

from penstock.contract.manifest import ChangeCounts
from penstock.flow.capture.next_window import NextWindow
from penstock.flow.capture.prefetch import prefetch
from penstock.flow.capture.slot_check import SourceState
from penstock.flow.context import Context
from penstock.flow.schema.evidence import Landed
from penstock.landing import layout
from penstock.landing.writer import Closing, FileWriter, close_all
from penstock.landing.zone import LandingZone
from penstock.ledger import new_attempt
from penstock.ledger.records import ActivePipeline, WindowRecord
from penstock.lsn import Lsn
from penstock.shapes.ddl_message import DdlLog
from penstock.source import peek, server_info, session
from penstock.source.peek import Logical, Request
from penstock.wire.batch import StreamDigest
from penstock.wire.columnar import ChangeBlock, ColumnarDecoder, Relation

VersionOf = Callable[[Relation, int], int]
_DDL = "told"
_HEAVY = 64 << 20  # bytes between two threads; what ordinary batches never come to


def sweep(ctx: Context, attempts: Sequence[WindowRecord]) -> None:
    """Delete what runs that died before staging have written: attempts that the ledger will not stage any more."""
    for dead in attempts:
        ctx.landing.delete_folder(layout.window_folder(ctx.name, dead.from_lsn, dead.upto_lsn, dead.attempt))


def plan_window(
    ctx: Context, known: ActivePipeline, end: server_info.Position, upto: Lsn, before: SourceState
) -> WindowRecord:
    """Plan the window that follows, to the next barrier at most, in place of what a dead run has left."""
    dead = ctx.ledger.windows.all(ctx.name, state="planned")
    planned = ctx.ledger.windows.plan(
        ctx.name,
        from_lsn=known.position,
        upto_lsn=upto,
        attempt=new_attempt(),
        source_time=end.time,
        settings_digest=session.pinned_digest(),
        oldest_xid=end.oldest_xid,
        read_from=before.restart,
    )
    sweep(ctx, dead)  # after it: one that only seems to be dead can stage nothing from here on
    return planned


def request_of(ctx: Context, known: ActivePipeline, upto: Lsn, logical: Logical) -> Request:
    """Return what a peek from where the slot stands to `upto` asks for."""
    return Request(known.slot, known.publication, upto, ctx.pipeline.source.origin == "none", logical)


def asked(request: Request) -> str:
    """Return how a digest says with which options its messages were asked for."""
    origin = "none" if request.origin_none else "any"
    return origin if request.logical is Logical.UNSENT else f"{origin}+{_DDL}"


def asked_again(options: str, request: Request) -> Request:
    """Return the request by which the transactions of a digest come again; what the event trigger told of them is not read twice."""
    origin, _, ddl = options.partition("+")
    return replace(request, origin_none=origin == "none", logical=Logical.PASSED_OVER if ddl else Logical.UNSENT)


@dataclass(frozen=True, slots=True)
class Written:
    """Hold what a window has left in the landing zone, the digest of its messages, since when it was made, and whether it was read ahead."""

    landed: Landed
    digest: str
    started: float
    ahead: bool


def write_window(
    ctx: Context, window: WindowRecord, request: Request, following: NextWindow | None, *, xid_horizon: int
) -> Written:
    """Peek a planned window by the request for it and write it; nothing refers to what is written."""
    digest, left_out = StreamDigest(), frozenset(ctx.pipeline.source.skip_origins)
    ahead = following.take(window.from_lsn, request) if following else None
    peeked, started = ahead or (peek.peek(ctx.source, request, ctx.pipeline.capture), monotonic())
    ddl = DdlLog() if request.logical is Logical.PROVED else None
    decoder = ColumnarDecoder(xid_horizon=xid_horizon, skip_origins=left_out, logical=ddl)
    folder = layout.window_folder(ctx.name, window.from_lsn, window.upto_lsn, window.attempt)
    batches = digest.passing(following.starting(peeked) if following else peeked)
    landed = land(batches, decoder, ctx.landing, folder, ctx.ledger.shapes.relation_versions(ctx.name).number)
    return Written(replace(landed, ddl=ddl), digest.text(asked(request)), started, ahead is not None)


def land(
    batches: Iterable[pa.BinaryArray],
    decoder: ColumnarDecoder,
    zone: LandingZone,
    folder: str,
    version_of: VersionOf,
) -> Landed:
    """Write every change of the window's messages below `folder`; on any error no file of it is left open.

    `batches` are arrays of pgoutput messages in stream order; `version_of` numbers relation shapes, by content and split.
    Raises ProtocolError, SourceError or LakeError; files of a failed attempt are never referred to.
    """
    writers: dict[tuple[int, int], _Open] = {}
    relations: dict[tuple[int, int], Relation] = {}
    splits: dict[tuple[int, int], int] = {}
    try:
        with (
            closing(prefetch(batches, weigh=lambda batch: batch.nbytes, limit=_HEAVY)) as pulled,
            closing(prefetch(_blocks(pulled, decoder), weigh=lambda one: one.batch.nbytes, limit=_HEAVY)) as blocks,
        ):
            for block in blocks:
                key = (block.relation.oid, version_of(block.relation, block.split))
                if key not in writers:
                    relations[key], splits[key] = block.relation, block.split
                    names = [column.name for column in block.relation.columns]
                    writers[key] = _Open(zone.writer(layout.window_file(folder, *key), names))
                writers[key].write(block)
                del block
        totals = decoder.finish()
        old_nulls: dict[int, frozenset[str]] = {}
        for (oid, _), opened in writers.items():
            old_nulls[oid] = old_nulls.get(oid, frozenset()) | opened.old_nulls
        files = tuple(close_all([opened.closing(*key) for key, opened in writers.items()]))
    except BaseException:
        for opened in writers.values():
            opened.writer.abort()
        raise
    after = {key: totals.after[relation, splits[key]] for key, relation in relations.items()}
    return Landed(files, relations, totals, old_nulls, after)


def _blocks(batches: Iterable[pa.BinaryArray], decoder: ColumnarDecoder) -> Iterator[ChangeBlock]:
    for batch in batches:
        yield from decoder.feed(batch)
        del batch


class _Open:
    """Hold one open file and the counts of what it received."""

    def __init__(self, writer: FileWriter) -> None:
        self.writer = writer
        self.counts = ChangeCounts()
        self.old_nulls: frozenset[str] = frozenset()

    def write(self, block: ChangeBlock) -> None:
        self.writer.write(block.batch)
        self.counts += block.counts
        self.old_nulls |= block.old_nulls

    def closing(self, oid: int, version: int) -> Closing:
        return Closing(self.writer, oid, version, self.counts)

"""One window of the slot: planned in the ledger, and turned into landing files by pull, decode and write, overlapped in threads.

Every relation shape gets its own file. Nothing here decides anything: it moves bytes, in bounded memory,
and says what it wrote. Two iterators that run ahead, around the decoder, make the three steps overlap. Of rows that are large by
themselves, one is in memory at a time: each step releases what it has handed on before it asks for more.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from threading import Condition
from time import monotonic
from typing import TypeVar, cast

import pyarrow as pa

from penstock.contract.manifest import ChangeCounts
from penstock.flow.capture.next_window import NextWindow
from penstock.flow.capture.slot_check import SourceState
from penstock.flow.context import Context
from penstock.flow.schema.evidence import Landed
from penstock.landing import layout
from penstock.landing.writer import FileWriter, close_all
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
Item = TypeVar("Item")
_END = object()
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
    opened: dict[tuple[int, int], _Open] = {}
    try:
        with (
            closing(prefetch(batches, weigh=lambda batch: batch.nbytes, limit=_HEAVY)) as pulled,
            closing(prefetch(_blocks(pulled, decoder), weigh=lambda one: one.batch.nbytes, limit=_HEAVY)) as blocks,
        ):
            for block in blocks:
                key = (block.relation.oid, version_of(block.relation, block.split))
                if key not in opened:
                    names = [column.name for column in block.relation.columns]
                    writer = zone.writer(layout.window_file(folder, *key), names)
                    opened[key] = _Open(writer, block.relation, block.split)
                opened[key].write(block)
                del block
        totals = decoder.finish()
        files = close_all([(each.writer, *key, each.counts) for key, each in opened.items()])
    except BaseException:
        for each in opened.values():
            each.writer.abort()
        raise
    old_nulls: dict[int, frozenset[str]] = {}
    for (oid, _), each in opened.items():
        old_nulls[oid] = old_nulls.get(oid, frozenset()) | each.old_nulls
    relations = {key: each.relation for key, each in opened.items()}
    after = {key: totals.after[each.relation, each.split] for key, each in opened.items()}
    return Landed(tuple(files), relations, totals, old_nulls, after)


def _blocks(batches: Iterable[pa.BinaryArray], decoder: ColumnarDecoder) -> Iterator[ChangeBlock]:
    for batch in batches:
        yield from decoder.feed(batch)
        del batch


@dataclass(slots=True)
class _Open:
    """Hold one open file of a relation's shape and the counts of what it received."""

    writer: FileWriter
    relation: Relation
    split: int
    counts: ChangeCounts = field(default_factory=ChangeCounts)
    old_nulls: frozenset[str] = frozenset()

    def write(self, block: ChangeBlock) -> None:
        self.writer.write(block.batch)
        self.counts += block.counts
        self.old_nulls |= block.old_nulls


def prefetch(
    items: Iterable[Item], depth: int = 2, *, weigh: Callable[[Item], int] = lambda _: 0, limit: int = 0
) -> Generator[Item, None, None]:
    """Yield the items in order while a thread produces some of them in advance: `depth`, and the one that it is about to make.

    It produces none while those that wait and the one that the consumer has weigh more than `limit` by `weigh`. The consumer
    has one until it asks for the next; if it releases it before, only one heavy item is in memory at a time. Who stops early closes it,
    and stops the producer; an exception of the producer is raised at the consumer.
    """
    iterator, changed = iter(items), Condition()
    weight, is_over = 0, False

    def make() -> object:
        nonlocal weight
        with changed:
            changed.wait_for(lambda: weight <= limit or is_over)
        item = _END if is_over else next(iterator, _END)
        if item is not _END:
            with changed:
                weight += weigh(cast(Item, item))
        return item

    maker = ThreadPoolExecutor(1, thread_name_prefix="ahead")
    waiting = deque(maker.submit(make) for _ in range(depth + 1))
    try:
        while (item := waiting.popleft().result()) is not _END:
            waiting.append(maker.submit(make))
            size = weigh(cast(Item, item))
            yield cast(Item, item)
            del item  # it is the consumer's alone: two heavy ones would be there when the next is made
            with changed:
                weight -= size
                changed.notify()
    finally:
        with changed:
            is_over = True
            changed.notify()
        maker.shutdown(cancel_futures=True)
        close = getattr(iterator, "close", None)
        if close is not None:
            close()

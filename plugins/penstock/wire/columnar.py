"""Messages of a peek in, Arrow columns of the landing contract out, without Python per row or per transaction.

Strategy: Python reads the few control messages of a batch (R, Y, O, M) with the scalar decoder's readers and turns them
into small arrays; `passes.scan` walks all messages in one compiled loop, `passes.gather` copies the columns of each
relation in another; what belongs to a transaction (LSN, time, xid, origin) is taken by the rows' transaction numbers.
State lives between batches, so a batch may end after any message. Whatever the compiled loop refuses, the scalar decoder
explains. Cost: O(bytes), plus Python per control message and per relation in a batch.

Input: protocol 1, text values, option `messages`; neither two_phase nor streaming.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.contract.manifest import ChangeCounts
from penstock.errors import ProtocolError
from penstock.lsn import Lsn
from penstock.wire.arrays import NONE, Controls, Progress, Rows, Sizes, Transactions
from penstock.wire.batch import MessageBatch, explain
from penstock.wire.controls import ControlReader, LogicalMessages, Partition
from penstock.wire.messages import Relation, RelationColumn
from penstock.wire.pgoutput import Decoder, Place, Within
from penstock.wire.readers import NEXT_STEP

__all__ = ["ChangeBlock", "ColumnarDecoder", "Relation", "RelationColumn", "Totals", "warm_up"]


@dataclass(frozen=True, slots=True)
class ChangeBlock:
    """Hold changes of one shape of a relation, in stream order, as a record batch of the landing contract.

    `old_nulls` names the columns that are NULL in an old row. `split` counts how often the same content stood for other columns before.
    """

    relation: Relation
    batch: pa.RecordBatch
    counts: ChangeCounts
    old_nulls: frozenset[str] = frozenset()
    split: int = 0


@dataclass(frozen=True, slots=True)
class Totals:
    """Say what a decoder has seen; `changes` are the rows it gave, without those of skipped origins.

    `after` says for each relation and split where it was announced: after so many logged events of the table.
    """

    messages: int
    transactions: int
    changes: int
    partitions: tuple[Partition, ...]
    after: Mapping[tuple[Relation, int], frozenset[int]] = field(default_factory=dict)


class ColumnarDecoder:
    """Decode the messages of one peek, batch by batch; after a ProtocolError it is of no more use.

    `xid_horizon` is the 64-bit xmax of `pg_current_snapshot()`, taken before the peek. Transactions whose origin is in
    `skip_origins` are checked but give no rows. `logical` reads the log of DDL, where
    the peek brings its messages, each proved to be its own; else no content of a logical message is looked at.
    """

    def __init__(
        self, *, xid_horizon: int, skip_origins: frozenset[str] = frozenset(), logical: LogicalMessages | None = None
    ) -> None:
        # numba takes a second to import: not before the first decoding
        from penstock.wire import assemble, passes  # noqa: PLC0415

        self._passes, self._assemble = passes, assemble
        self._horizon = xid_horizon
        self._controls = ControlReader(skip_origins, logical or LogicalMessages())
        self._progress = Progress()
        self._transactions = Transactions.allocate(0)
        self._messages = 0
        self._changes = 0
        self._announced: Relation | None = None
        self._partitions: dict[int, Partition] = {}

    def feed(self, data: pa.BinaryArray) -> list[ChangeBlock]:
        """Decode a batch of whole messages; return blocks in the order of their first rows.

        `data` is the column of that name of `pg_logical_slot_peek_binary_changes`. Raises ProtocolError.
        """
        batch = MessageBatch.of(data)
        if not len(batch):
            return []
        rows, sizes = self._scan(batch)
        blocks = list(self._blocks(batch, rows, sizes))
        self._messages += len(batch)
        self._changes += len(rows.op)
        return blocks

    def finish(self) -> Totals:
        """Return what was seen; raises ProtocolError when the peek ended within a transaction."""
        if self._progress.opened:
            expected = f"the COMMIT of the transaction at {self._newest_lsn()} before the end of the peek"
            raise ProtocolError("protocol-sequence", f"expected {expected}, got none; {NEXT_STEP}")
        return Totals(
            messages=self._messages,
            transactions=self._progress.transactions,
            changes=self._changes,
            partitions=tuple(self._partitions.values()),
            after=self._controls.places(),
        )

    def _scan(self, batch: MessageBatch) -> tuple[Rows, Sizes]:
        """Check the whole batch and find its changes; raises ProtocolError for the first message that is wrong."""
        oracle = Decoder(relations=self._controls.known(), place=self._place())
        try:
            numbers = batch.tagged(b"RYOM")
            controls = self._controls.read([batch[number] for number in numbers.tolist()])
        except ProtocolError as error:
            raise explain(batch, len(batch) - 1, oracle, self._messages) from error
        self._note_partitions(batch, numbers.tolist(), controls)
        self._transactions = Transactions.allocate(len(batch.tagged(b"B")), self._transactions)
        rows, sizes = Rows.allocate(batch.most_rows()), Sizes.allocate(self._controls.catalogue)
        self._progress = self._passes.scan(
            batch.data,
            batch.offsets,
            controls,
            self._controls.catalogue,
            self._transactions,
            rows,
            sizes,
            self._progress,
        )
        if self._progress.refused != NONE:
            raise explain(batch, self._progress.refused, oracle, self._messages)
        return rows.take(slice(self._progress.rows)), sizes

    def _note_partitions(self, batch: MessageBatch, numbers: Sequence[int], controls: Controls) -> None:
        """Note relations that were announced right before a change of another one: they are its partitions."""
        follower = 0
        for number, value in zip(numbers, controls.value.tolist(), strict=True):
            if batch.tags[number] in b"R":
                self._note_follower(batch, follower)
                self._announced, follower = self._controls.shapes[value], number + 1
        self._note_follower(batch, follower)

    def _note_follower(self, batch: MessageBatch, number: int) -> None:
        """Hold the relation announced last against the message after it, which may be the next batch's first."""
        if self._announced is None or number == len(batch):
            return
        leaf, self._announced = self._announced, None
        changed = batch.relation(number) if batch.tags[number] in b"IUD" else leaf.oid
        if changed != leaf.oid:
            self._partitions[leaf.oid] = Partition(leaf.oid, changed, f"{leaf.namespace}.{leaf.name}")

    def _blocks(self, batch: MessageBatch, rows: Rows, sizes: Sizes) -> Iterator[ChangeBlock]:
        transactions = self._assemble.transaction_batch(self._transactions, self._controls.origins, self._horizon)
        order = self._passes.group(rows.version, sizes.rows)
        parts = np.split(order, np.cumsum(sizes.rows)[:-1])
        for part in sorted(filter(len, parts), key=lambda part: int(part[0])):
            taken = rows if len(part) == len(order) else rows.take(part)
            version = int(taken.version[0])
            relation = self._controls.shapes[version]
            arrays = self._assemble.record_batch(
                relation,
                batch.data,
                taken,
                ordinals=self._changes + part,
                transactions=transactions,
                sizes=sizes.of(version, self._controls.catalogue),
            )
            yield ChangeBlock(
                relation,
                arrays,
                _counts(taken, arrays.column("unchanged")),
                _old_nulls(relation, arrays.column("old")),
                self._controls.splits[version],
            )

    def _place(self) -> Place:
        if not self._progress.opened:
            return Place()
        return Place(Within.TRANSACTION, self._newest_lsn(), bool(self._progress.just_opened))

    def _newest_lsn(self) -> Lsn:
        return Lsn(int(self._transactions.final_lsn[-1]))


def _counts(rows: Rows, unchanged: pa.ListArray) -> ChangeCounts:
    inserts, updates, deletes, truncates = (int(np.count_nonzero(rows.op == letter)) for letter in b"IUDT")
    old_key, old_full = (int(np.count_nonzero(rows.old_kind == letter)) for letter in b"KO")
    return ChangeCounts(inserts, updates, deletes, truncates, len(unchanged) - unchanged.null_count, old_key, old_full)


def _old_nulls(relation: Relation, old: pa.StructArray) -> frozenset[str]:
    """Name the columns that are NULL in an old row: of an old key all but the key's."""
    if old.null_count == len(old):
        return frozenset()
    there = old.is_valid()
    nulls = (pc.any(pc.and_(there, pc.is_null(old.field(number)))).as_py() for number in range(len(relation.columns)))
    return frozenset(column.name for column, null in zip(relation.columns, nulls, strict=True) if null)


def warm_up() -> None:
    """Compile the passes, or load them from numba's cache; takes seconds once per machine."""
    relation = struct.pack("!cI2s2scH", b"R", 1, b"s\0", b"t\0", b"d", 1) + struct.pack("!B2sIi", 1, b"c\0", 25, -1)
    stream = [
        struct.pack("!cQqI", b"B", 1, 0, 3),
        relation,
        struct.pack("!cIcHcI1s", b"I", 1, b"N", 1, b"t", 1, b"x"),
        struct.pack("!cBQQq", b"C", 0, 1, 2, 0),
    ]
    decoder = ColumnarDecoder(xid_horizon=4)
    decoder.feed(pa.array(stream, pa.binary()))
    decoder.finish()

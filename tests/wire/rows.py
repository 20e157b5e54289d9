"""What both decoders say of a stream, in one plain form, so that they can be compared."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pyarrow as pa

from penstock.contract.manifest import ChangeCounts
from penstock.contract.schema import NO_COLUMNS_FIELD
from penstock.lsn import Lsn
from penstock.shapes.ddl_message import DdlLog
from penstock.wire import messages as m
from penstock.wire.columnar import ChangeBlock, ColumnarDecoder, Totals
from penstock.wire.pgoutput import Decoder

HORIZON = 5 << 32
NO_ORIGINS: frozenset[str] = frozenset()
Image = dict[str, str | None] | None


@dataclass(frozen=True)
class Row:
    """One change as the landing contract has it, with the shape of its relation."""

    relation: m.Relation
    ordinal: int
    op: str
    commit_lsn: int
    committed_at: int | None
    xid: int
    origin: str | None
    new: Image
    old: Image
    old_kind: str | None
    unchanged: list[str] | None


def batches(messages: Sequence[bytes], cuts: Iterable[int] = ()) -> list[pa.BinaryArray]:
    """Return the messages as Arrow arrays that end at the given places."""
    ends = [*sorted(cuts), len(messages)]
    return [pa.array(messages[start:end], pa.binary()) for start, end in zip([0, *ends], ends, strict=False)]


def feed(
    arrays: Iterable[pa.BinaryArray],
    horizon: int = HORIZON,
    skip_origins: frozenset[str] = NO_ORIGINS,
    *,
    ddl: DdlLog | None = None,
) -> tuple[list[ChangeBlock], Totals]:
    """Run the columnar decoder over whole arrays."""
    decoder = ColumnarDecoder(xid_horizon=horizon, skip_origins=skip_origins, logical=ddl)
    blocks = [block for array in arrays for block in decoder.feed(array)]
    return blocks, decoder.finish()


def rows_of(blocks: Iterable[ChangeBlock]) -> list[Row]:
    """Return the rows of all blocks in stream order, after checking what each block promises."""
    rows = [row for block in blocks for row in _rows(block)]
    return sorted(rows, key=lambda row: row.ordinal)


def _rows(block: ChangeBlock) -> list[Row]:
    block.batch.validate(full=True)
    time = block.batch.schema.get_field_index("committed_at")
    plain = block.batch.set_column(time, "committed_at", block.batch.column(time).cast(pa.int64()))
    rows = [Row(relation=_as_sent(block.relation), **row) for row in plain.to_pylist()]
    ordinals = [row.ordinal for row in rows]
    assert ordinals == sorted(set(ordinals))
    assert block.counts == counts_of(rows)
    return rows


def counts_of(rows: list[Row]) -> ChangeCounts:
    """Count the hard way what a block says it counted."""
    ops, kinds = [row.op for row in rows], [row.old_kind for row in rows]
    return ChangeCounts(
        inserts=ops.count("I"),
        updates=ops.count("U"),
        deletes=ops.count("D"),
        truncates=ops.count("T"),
        unchanged=sum(row.unchanged is not None for row in rows),
        old_key=kinds.count("K"),
        old_full=kinds.count("O"),
    )


def scalar_rows(
    messages: Iterable[bytes], horizon: int = HORIZON, skip_origins: frozenset[str] = NO_ORIGINS
) -> list[Row]:
    """Return the rows that the scalar decoder's messages come to; the oracle."""
    rows: list[Row] = []
    decoder = Decoder()
    begin = m.Begin(Lsn(0), 0, 0)
    origin: str | None = None
    for data in messages:
        match decoder.decode(data):
            case m.Begin() as begin:
                origin = None
            case m.Origin(name=origin):
                pass
            case m.Insert() | m.Update() | m.Delete() | m.Truncate() as change if origin not in skip_origins:
                for relation, op, new, old in _images(change):
                    rows.append(
                        Row(
                            relation,
                            len(rows),
                            op,
                            begin.final_lsn,
                            unix_us(begin.commit_time),
                            nearest_xid(begin.xid, horizon),
                            origin,
                            _image(relation, new),
                            _image(relation, old.cells if old else None),
                            {m.OldKey: "K", m.OldRow: "O"}.get(type(old)),
                            _unchanged(relation, new),
                        )
                    )
    return rows


def _images(
    change: m.Change,
) -> Iterator[tuple[m.Relation, str, tuple[m.Cell, ...] | None, m.OldKey | m.OldRow | None]]:
    match change:
        case m.Insert(relation, new):
            yield relation, "I", new, None
        case m.Update(relation, old, new):
            yield relation, "U", new, old
        case m.Delete(relation, old):
            yield relation, "D", None, old
        case m.Truncate(relations):
            yield from ((relation, "T", None, None) for relation in relations)


def _as_sent(relation: m.Relation) -> m.Relation:
    """Return a relation as its own message has it: the scalar decoder does not hold it against TYPE messages."""
    return replace(relation, columns=tuple(replace(column, base="") for column in relation.columns))


def _image(relation: m.Relation, cells: tuple[m.Cell, ...] | None) -> Image:
    if cells is None:
        return None
    texts = (cell.value if isinstance(cell, m.Text) else None for cell in cells)
    return {column.name: text for column, text in zip(relation.columns, texts, strict=True)} or {NO_COLUMNS_FIELD: None}


def _unchanged(relation: m.Relation, cells: tuple[m.Cell, ...] | None) -> list[str] | None:
    named = zip(relation.columns, cells or (), strict=cells is not None)
    return [column.name for column, cell in named if cell is m.Missing.UNCHANGED] or None


def unix_us(time: int) -> int | None:
    """Turn microseconds since 2000 into those since 1970, None where 64 bits can't hold them or they are infinite."""
    epoch = int(datetime(2000, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
    return None if time + epoch >= 2**63 or time == -(2**63) else time + epoch


def nearest_xid(xid: int, horizon: int) -> int:
    """Return the 64-bit xid with these low bits that is nearest to the horizon."""
    epoch = horizon >> 32
    return min(((epoch + turn << 32 | xid) for turn in (-1, 0, 1)), key=lambda full: abs(full - horizon))

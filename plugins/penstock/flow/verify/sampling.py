"""Which tables a verification looks at, and which part of each: all rows, or the share that is due.

The keys of a table are cut into shares of about as many rows each, by the lake's own distribution of the first key
column. A round looks at every share once; a share in which something differed is looked at in every run until it is fixed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from penstock.compare.lake_reader import LakeReader, LakeTable
from penstock.compare.pg_text import row_texts, texts
from penstock.errors import ConfigError, LakeError
from penstock.flow.context import Context
from penstock.flow.guards import require_named
from penstock.flow.verify.compare import Chosen, known_tables
from penstock.ledger.table_records import TableRecord
from penstock.ledger.verifications import KeyShare, Mode
from penstock.shapes.source_table import SourceTable
from penstock.source import session
from penstock.source.catalog_snapshot import read_catalog
from penstock.source.patterns import named_by
from penstock.source.text_rows import LeadingKey, leading_keys
from penstock.values.lake_types import lake_type_of

_SAMPLED_ROWS = 1_000_000
_KEYLESS = "it has no key by which its rows could be cut into shares"


def selected(ctx: Context, names: Sequence[str]) -> list[TableRecord]:
    """Return the tables of these names, or without any those that the pipeline file chooses.

    Raises ConfigError("table-unknown") with the nearest name.
    """
    known = known_tables(ctx)
    if names:
        return require_named(known, names)
    is_named = named_by(ctx.pipeline.verify.tables)
    return [record for record in known if is_named(record.schema, record.name)]


def choose(ctx: Context, lake: LakeReader, names: Sequence[str], mode: Mode) -> list[Chosen]:
    """Choose what this run compares, and begin new rounds where the old ones are at their end.

    Raises ConfigError: "table-unknown", and in a sample "config-invalid" for a table without a key that was named.
    """
    records = selected(ctx, names)
    if mode == "whole" or ctx.pipeline.verify.shares == 1:
        return [_whole(record) for record in records]
    return list(_Sample(ctx, lake, bool(names), records).chosen())


def _whole(record: TableRecord) -> Chosen:
    """Choose all rows, unless the table is in no cut anyway: then reading it would be for nothing."""
    if record.state == "ready":
        return Chosen(record)
    return _skipped(record, f"it is {record.state}{f' by {record.paused_slug}' if record.paused_slug else ''}")


def _skipped(record: TableRecord, reason: str) -> Chosen:
    return Chosen(record, known=Chosen(record).skipped(reason))


@dataclass(frozen=True, slots=True)
class _Sample:
    ctx: Context
    lake: LakeReader
    by_name: bool
    records: Sequence[TableRecord]

    def chosen(self) -> Iterator[Chosen]:
        with session.connect(self.ctx.source, what=f"{self.ctx.name}:verify") as conn:
            tables = read_catalog(conn, self.ctx.pipeline.publication, sizes=True).by_oid
            keys = leading_keys(conn, tables)
        shares = self.ctx.ledger.verifications.key_shares(self.ctx.name)
        for record in self.records if self.by_name else ():
            _require_key(record, tables.get(record.oid))
        for record in self.records:
            yield from self._of_table(record, tables.get(record.oid), keys.get(record.oid), shares.get(record.oid, []))

    def _of_table(
        self, record: TableRecord, table: SourceTable | None, key: LeadingKey | None, shares: Sequence[KeyShare]
    ) -> Iterator[Chosen]:
        if record.state != "ready" or table is None or table.bytes < self.ctx.pipeline.verify.whole_below:
            yield _whole(record)
        elif not table.key or key is None:
            yield _skipped(record, _KEYLESS)
        else:
            try:
                yield from (Chosen(record, share) for share in turn(self._round(record, table, key, shares)))
            except LakeError as error:
                if error.slug != "lake-unreadable":
                    raise
                yield Chosen(record, known=Chosen(record).unreadable(error))

    def _round(
        self, record: TableRecord, table: SourceTable, key: LeadingKey, shares: Sequence[KeyShare]
    ) -> Sequence[KeyShare]:
        """Return the shares of the round that is under way, or begin the next one."""
        type = next(column.type for column in table.columns if column.name == key.name)
        alike = key.ordered_alike(lake_type_of(type))
        wanted = self.ctx.pipeline.verify.shares
        ledger, name = self.ctx.ledger, self.ctx.name
        same = bool(shares) and (shares[0].wanted, shares[0].key_column, shares[0].key_type, shares[0].indexed) == (
            wanted, key.name, key.type, alike,
        )  # fmt: skip
        if same and any(share.verified_lsn is None for share in shares):
            return shares
        if same and any(share.differs for share in shares):
            ledger.verifications.begin_round(name, record.oid)
        else:
            there = self.lake.table(record.target)
            bounds = cut_points(there, key.name, wanted, indexed=alike) if there else []
            ledger.verifications.cut_shares(
                name, record.oid, wanted=wanted, column=key.name, type=key.type, indexed=alike, bounds=bounds
            )
        return ledger.verifications.key_shares(name)[record.oid]


def turn(shares: Sequence[KeyShare]) -> list[KeyShare]:
    """Return the share that is due, and the one that differs and was not looked at for longest."""
    due = [share for share in shares if share.verified_lsn is None][:1]
    differing = [share for share in shares if share.differs and share.verified_at and share not in due]
    return [*due, *sorted(differing, key=lambda share: str(share.verified_at))[:1]]


def cut_points(table: LakeTable, column: str, shares: int, *, indexed: bool) -> list[str]:
    """Return PostgreSQL's texts of the values at which the column's values fall into so many equal shares, or fewer.

    About a million values are looked at, evenly through the table.
    """
    step = max(1, table.rows // _SAMPLED_ROWS)
    found = [_values(batch, column, indexed=indexed)[::step] for batch in table.batches((column,))]
    if not found:
        return []
    values = pa.chunked_array(found).drop_null().combine_chunks()
    ordered = values.take(pc.array_sort_indices(values))
    places = [len(ordered) * number // shares for number in range(1, shares)]
    points = pc.unique(ordered.take(pa.array(places, pa.int64())))
    if len(ordered):
        points = points.filter(pc.not_equal(points, ordered[0]))  # nothing lies below the least value
    return [str(point) for point in texts(points).to_pylist()]


def _values(batch: pa.RecordBatch, column: str, *, indexed: bool) -> pa.Array:
    return batch.column(column) if indexed else row_texts(batch, [column])[0]


def _require_key(record: TableRecord, table: SourceTable | None) -> None:
    if table is not None and not table.key:
        raise ConfigError(
            "config-invalid",
            f"expected {record.schema}.{record.name} to have a key, but {_KEYLESS}; verify it in mode whole",
        )

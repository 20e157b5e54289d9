"""The one driver of comparisons: which tables, what of each at the source, and which state of the lake's table.

The source is read as an exported snapshot sees it, the lake where the caller says: as it is now (`compare`), or at the cut
of a verification. A table that cannot be read says so in its comparison, and the others are compared.
"""

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from penstock.compare.fingerprint import Fingerprint
from penstock.compare.lake_reader import LakeTable, lake_reader
from penstock.compare.report import ComparedTable, Comparison, TableComparison, unpromised
from penstock.compare.rows import compare_table, fingerprint
from penstock.errors import LakeError, PenstockError
from penstock.flow.context import Context
from penstock.flow.load.read import retried
from penstock.ledger.table_records import TableRecord
from penstock.ledger.verifications import KeyShare
from penstock.shapes import partition_bounds
from penstock.shapes.source_table import SourceTable
from penstock.source import catalog, catalog_snapshot
from penstock.source.reading import TableError, of_one_table, require_same
from penstock.source.slot import Exported, export_snapshot
from penstock.source.text_rows import KeyRange, outside_bound, rendered, rendered_rows

TRIES = 3
"""So often a table is compared as it is now that is truncated or rewritten before it is read."""
UNPUBLISHED = "the source does not publish it"


@dataclass(frozen=True, slots=True)
class Chosen:
    """Name a table to compare, all of it or one share; `known` says why it is not to be read, where that is known before."""

    record: TableRecord
    share: KeyShare | None = None
    known: TableComparison | None = None

    @property
    def part(self) -> KeyRange | None:
        """Return the range of keys to compare, None for all rows."""
        share = self.share
        if share is None:
            return None
        return KeyRange(share.key_column, share.key_type, share.indexed, share.lower, share.upper)

    @property
    def empty(self) -> TableComparison:
        """Return a comparison of nothing of it."""
        record, share = self.record, self.share
        found = TableComparison(record.schema, record.name, record.target, record.oid)
        return replace(found, share=share.share, shares=share.shares) if share else found

    def skipped(self, reason: str) -> TableComparison:
        """Say why it is not compared."""
        return replace(self.empty, skipped=reason)

    def unreadable(self, trouble: PenstockError) -> TableComparison:
        """Say what kept a side from being read."""
        return replace(self.empty, trouble=trouble)


@dataclass(frozen=True, slots=True)
class SourceSide:
    """Hold the source's side of what was chosen: what to compare and the fingerprint of its rows, or why it is not compared."""

    chosen: Chosen
    asked: ComparedTable | TableComparison
    here: Fingerprint | None = None


@dataclass(frozen=True, slots=True)
class Comparer:
    """Compare tables with the source as one exported snapshot sees it."""

    ctx: Context
    exported: Exported
    what: str

    def source_sides(self, chosen: Sequence[Chosen]) -> Iterator[SourceSide]:
        """Read the source's side of each, one after the other; raises SourceError for what concerns all of them."""
        conn, publication = self.exported.conn, self.ctx.pipeline.publication
        snapshot = catalog_snapshot.read_catalog(conn, publication)
        for each in chosen:
            if each.known is not None:
                yield SourceSide(each, each.known)
            elif each.record.oid not in snapshot.by_oid:
                yield SourceSide(each, each.skipped(UNPUBLISHED))
            else:
                try:
                    with of_one_table(), conn.transaction():
                        table = catalog.with_filter(conn, publication, snapshot.by_oid[each.record.oid])
                    asked = replace(compared(table, each.record, snapshot.sent), part=each.part)
                    yield SourceSide(each, asked, fingerprint(asked, self._rows))
                except TableError as error:
                    yield SourceSide(each, each.unreadable(error))

    def with_lake(self, side: SourceSide, lake: Callable[[TableRecord], LakeTable | str | None]) -> TableComparison:
        """Compare it with the table of the lake that `lake` gives, None for none, or say why not, as `lake` can, too.

        Raises SourceError or LakeError for what concerns all tables.
        """
        if isinstance(side.asked, TableComparison):
            return side.asked
        try:
            there = lake(side.chosen.record)
            if isinstance(there, str):
                return side.chosen.skipped(there)
            found, place = compare_table(side.asked, self._rows, there, side.here), side.chosen.empty
            return replace(found, oid=place.oid, share=place.share, shares=place.shares)
        except (TableError, LakeError) as error:
            if isinstance(error, LakeError) and error.slug != "lake-unreadable":
                raise
            return side.chosen.unreadable(error)

    def _rows(self, table: ComparedTable, columns: Sequence[str]) -> Generator[pa.Table, None, None]:
        """Read in a transaction of this table's own, so that its lock is held no longer than that."""
        name, seconds = self.exported.snapshot_name, self.ctx.pipeline.source.read_timeout
        with (
            rendered(
                self.ctx.reader, seconds=seconds, snapshot_name=name, what=f"{self.ctx.name}:{self.what}"
            ) as session,
            of_one_table(),
        ):
            require_same(session, table.relations)  # a name that is gone could not be read
            yield from rendered_rows(session, table.relations, columns, table.where, table.part)
            require_same(session, table.relations)


def compare(ctx: Context, records: Sequence[TableRecord] | None = None) -> Comparison:
    """Compare tables of a pipeline, or every one, paused ones too, with the source as it is now.

    Rows not yet merged are reported as missing. A table that cannot be read is reported, and the others are compared. Raises
    SourceError, LedgerError or LakeError for what concerns all of them.
    """
    left = {record.oid: Chosen(record) for record in (known_tables(ctx) if records is None else records)}
    found: dict[int, TableComparison] = {}
    with lake_reader(ctx.pipeline.lake.catalog, ctx.catalog) as lake:

        def compare_left(_: Collection[int]) -> Mapping[int, PenstockError]:
            with export_snapshot(ctx.source, what=f"{ctx.name}:compare") as now:
                comparer = Comparer(ctx, now, "compare")
                ctx.stage("comparing tables", 0, len(left))
                for done, side in enumerate(comparer.source_sides(list(left.values())), 1):
                    compared_now = comparer.with_lake(side, lambda record: lake.table(record.target))
                    found[side.chosen.record.oid] = compared_now
                    for line in compared_now.lines():
                        ctx.progress(line)
                    ctx.stage("comparing tables", done, len(left))
            rewritten = {oid: found[oid].trouble for oid in left if found[oid].rewritten}
            for oid in left.keys() - rewritten:
                del left[oid]
            return {oid: error for oid, error in rewritten.items() if error is not None}

        retried(lambda _: bool(left), compare_left, TRIES)
    return Comparison(tuple(found.values()))


def known_tables(ctx: Context) -> list[TableRecord]:
    """Return the pipeline's tables but those that were dropped."""
    return [record for record in ctx.ledger.tables.all(ctx.name) if record.state != "dropped"]


def compared(table: SourceTable, record: TableRecord, sent: Collection[str]) -> ComparedTable:
    """Say how a published table is compared with its target: what the stream carries of it, by the kinds that are `sent`."""
    names = {column.attnum: column.name for column in table.columns}
    kept = [each.bound for each in record.accepted.kept]
    bounds = [partition_bounds.named(bound, names) for bound in kept if partition_bounds.found_in_lake(bound)]
    where = [f"({each})" for each in (table.where, *map(outside_bound, bounds)) if each]
    lacking = unpromised(sent, keyed=bool(table.key))
    return ComparedTable(
        schema=table.schema,
        name=table.name,
        target=record.target,
        columns=tuple(column.name for column in table.columns),
        key=frozenset(table.key),
        naming_objects=frozenset(column.name for column in table.columns if column.names_objects),
        where=" and ".join(where) or None,
        # rows of foreign and unlogged partitions are not in the WAL
        heaps=tuple((leaf.schema, leaf.name) for leaf in table.leaves if (leaf.kind, leaf.persistence) == ("r", "p")),
        # rows that the lake keeps, and cannot tell from others
        unpromised=lacking if len(bounds) == len(kept) else tuple(dict.fromkeys([*lacking, "extra"])),
        kept=frozenset(column.name for column in record.columns if column.dropped),
        archive=tuple(bounds),
    )

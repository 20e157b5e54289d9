"""What to read of one table under a snapshot, and what the rows are to the lake's table: a request and its effect.

It is decided by the table as the snapshot shows it. A first copy, a resync, values of some columns and rows of some partitions
differ in nothing else.
"""

from dataclasses import dataclass, replace
from typing import Any

from penstock.jobs.plans import CopyRange
from penstock.ledger.loads import NewBuild, NewRead
from penstock.lsn import Lsn
from penstock.shapes.reads import BoundData
from penstock.shapes.source_table import SourceTable


@dataclass(frozen=True, slots=True)
class Fill:
    """The rows fill a fresh table at a `place` of its own: the first of its name, or what is built next to the table that readers see."""

    build: NewBuild | None = None
    place: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Replace:
    """The rows take the place of all rows of before that lie within none of these bounds."""

    kept_bounds: tuple[BoundData, ...]


@dataclass(frozen=True, slots=True)
class Overwrite:
    """The values overwrite those of the same key; `whole`: of all rows, so that what was landed of them before counts for nothing."""

    whole: bool


# a repair of some hash buckets of the key is to be another: a `where` of the request, and rows that take the place of the buckets'
Effect = Fill | Replace | Overwrite


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """Ask for rows of a table as it is `now`, in the snapshot.

    Of `columns`, by attnum, the values are read by key; None means whole rows. Of `leaves`, by oid, the rows are read; None means
    of all. `where` is a condition beside the row filter of the publication, which spares what need not be read. `texts` names the columns
    that land as texts whatever their types.
    """

    now: SourceTable
    effect: Effect
    columns: frozenset[int] | None = None
    leaves: frozenset[int] | None = None
    where: str | None = None
    texts: frozenset[str] = frozenset()

    @property
    def table(self) -> SourceTable:
        """Return the table with the leaves that are read."""
        if self.leaves is None:
            return self.now
        return replace(self.now, leaves=tuple(leaf for leaf in self.now.leaves if leaf.oid in self.leaves))

    @property
    def names(self) -> list[str]:
        """Name the columns whose values are read by key."""
        return [column.name for column in self.now.columns if column.attnum in (self.columns or ())]

    @property
    def new(self) -> NewRead:
        """Return what the ledger is to know before anything is read."""
        attnums = tuple(column.attnum for column in self.now.columns)
        match self.effect:
            case Fill(build, place):
                return NewRead(self.now.oid, build.cause if build else "first", build=build, place=place)
            case Replace(kept_bounds):
                leaves = tuple(leaf.name for leaf in self.table.leaves)
                return NewRead(self.now.oid, "partitions", attnums, stays=kept_bounds, leaves=leaves)
            case Overwrite(whole):
                return NewRead(self.now.oid, "columns", tuple(sorted(self.columns or ())), whole=whole)

    def order(self, rows: CopyRange, lsn: Lsn) -> CopyRange:
        """Order what is read of a range of whole rows: values by key land as changes right before the position."""
        conditions = [each for each in (rows.where, None if rows.plain else self.where) if each]
        wanted = replace(
            rows,
            where=" and ".join(f"({each})" for each in conditions)
            if len(conditions) > 1
            else next(iter(conditions), None),
            typed=tuple(pair for pair in rows.typed if pair[0] not in self.texts),
        )
        if self.columns is None:
            return wanted
        read = [column for column in self.now.columns if column.key or column.attnum in self.columns]
        by_key: dict[str, Any] = {"columns": tuple(column.name for column in read), "typed": ()}
        attnums = tuple(column.attnum for column in read)
        return replace(
            wanted, **by_key, attnums=attnums, commit_lsn=lsn - 1
        )  # no commit begins there: its record is longer

"""What a comparison of source and lake is asked, and what it reports: names, counts and hashes, never a value."""

from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from typing import Any, get_args

from penstock.compare.fingerprint import RowDifference
from penstock.compare.lake_reader import Target
from penstock.errors import PenstockError
from penstock.ledger.verifications import Outcome
from penstock.lsn import Lsn
from penstock.shapes.partition_bounds import Bound
from penstock.source.text_rows import KeyRange
from penstock.units import several


@dataclass(frozen=True, slots=True)
class ComparedTable:
    """Say what to compare: a source table, its published columns and rows, and its target.

    `key` are the columns that identify a row, and `naming_objects` those whose texts are names of other objects. `heaps` are (schema, name) of the relations that hold its rows: the leaves of a partitioned table. `part` is the
    range of keys to compare, None for all rows. `unpromised` are the kinds of difference (`missing`, `extra`, `different`)
    that the publication does not promise to avoid; `kept` the lake's columns that the source has dropped; `archive` the bounds of
    partitions whose rows only the lake has: nothing within them is compared, and `where` leaves it out at the source.
    """

    schema: str
    name: str
    target: Target
    columns: tuple[str, ...]
    key: frozenset[str] = frozenset()
    naming_objects: frozenset[str] = frozenset()
    where: str | None = None
    heaps: tuple[tuple[str, str], ...] | None = None
    part: KeyRange | None = None
    unpromised: tuple[str, ...] = ()
    kept: frozenset[str] = frozenset()
    archive: tuple[Bound, ...] = ()

    @property
    def relations(self) -> tuple[tuple[str, str], ...]:
        """Return what to read at the source."""
        return ((self.schema, self.name),) if self.heaps is None else self.heaps


def unpromised(sent: Collection[str], *, keyed: bool) -> tuple[str, ...]:
    """Name the kinds of difference that a publication which sends only these kinds of change does not promise to avoid.

    Without a key an update that is not sent looks like a row that is missing and one that is extra.
    """
    updates = "update" in sent
    kept = {
        "missing": "insert" in sent and (updates or keyed),
        "extra": "delete" in sent and "truncate" in sent and updates,
        "different": updates,
    }
    return tuple(kind for kind, promised in kept.items() if not promised)


@dataclass(frozen=True, slots=True)
class TableComparison:
    """Report one table, or one share of its keys: share 1 of 1 is all rows, whether or not the table has shares.

    `missing` rows are in the source only, `extra` ones in the lake only, `different` ones have the same key in both.
    Where `whole` is false, so much differs that only a part was counted. What is `unpromised` is counted and is no
    difference: the publication does not send the changes that would avoid it. `renamed` are columns whose texts are names of other
    objects, where these alone differ. With `trouble` a side could not be read, and with a reason why it was `skipped` neither
    was: nothing was compared.
    """

    schema: str
    name: str
    target: Target
    oid: int = 0
    share: int = 1
    shares: int = 1
    in_lake: bool = True
    source_rows: int = 0
    lake_rows: int = 0
    missing: int = 0
    extra: int = 0
    different: int = 0
    whole: bool = True
    columns_missing: tuple[str, ...] = ()
    columns_extra: tuple[str, ...] = ()
    first: tuple[RowDifference, ...] = ()
    unpromised: tuple[str, ...] = ()
    renamed: tuple[str, ...] = ()
    trouble: PenstockError | None = None
    skipped: str | None = None

    @property
    def outcome(self) -> Outcome:
        """Say what it came to: `equal` where both sides were read, and have the same columns and the same rows, as far as that is promised."""
        if self.trouble is not None:
            return "unreadable"
        if self.skipped is not None:
            return "skipped"
        unlike = any(self.broken.values()) or self.columns_missing or self.columns_extra or not self.in_lake
        return "differs" if unlike else "equal"

    @property
    def equal(self) -> bool:
        """Return whether both sides were read, and nothing differs that should not."""
        return self.outcome == "equal"

    @property
    def reason(self) -> str | None:
        """Say what kept it from being compared, or what differs and is none."""
        if self.trouble is not None or self.skipped is not None:
            return str(self.trouble or self.skipped)
        if not self.renamed:
            return None
        return (
            f"no difference, because it is in no stream: another text in {', '.join(self.renamed)}, the name of an object that was "
            "renamed or dropped since"
        )

    @property
    def qualified(self) -> str:
        """Return the source table's name with its schema."""
        return f"{self.schema}.{self.name}"

    @property
    def label(self) -> str:
        """Name the table, or its share, for a message."""
        return self.qualified if self.shares == 1 else f"{self.qualified} {self.share}/{self.shares}"

    @property
    def rewritten(self) -> bool:
        """Return whether it was not compared because the snapshot does not see its rows any more."""
        return self.trouble is not None and self.trouble.slug == "table-rewritten"

    @property
    def broken(self) -> dict[str, int]:
        """Count the rows that differ against what is promised, by kind."""
        return {kind: 0 if kind in self.unpromised else count for kind, count in self._counts.items()}

    @property
    def same_rows(self) -> bool:
        """Return whether not a single row differs."""
        return not any(self._counts.values())

    @property
    def left_out(self) -> dict[str, int]:
        """Count the rows that differ because the publication does not send every kind of change."""
        return {kind: count for kind, count in self._counts.items() if kind in self.unpromised}

    @property
    def _counts(self) -> dict[str, int]:
        return {"missing": self.missing, "extra": self.extra, "different": self.different}

    def recorded(self) -> dict[str, Any]:
        """Return what the ledger keeps of it: counts, names of columns and hashes of keys, never a value."""
        compared = self.trouble is None and self.skipped is None
        details = {
            "in_lake": self.in_lake,
            "counted_whole": self.whole,
            "left_out": self.left_out,
            "columns_missing": self.columns_missing,
            "columns_extra": self.columns_extra,
            "first": [asdict(row) for row in self.first],
        }
        names = ("oid", "schema", "share", "shares", "outcome", "reason", "source_rows", "lake_rows")
        known = {"table": self.name, **{name: getattr(self, name) for name in names}}
        return {**known, **self.broken, "details": details if compared else {}}

    def lines(self) -> Iterator[str]:
        """Describe the table, or its share, in sentences, without a value."""
        name = self.label
        if self.trouble is not None:
            yield f"{name}: could not be read, {self.trouble}"
            return
        if self.skipped is not None:
            yield f"{name}: not compared, {self.skipped}"
            return
        if not self.in_lake:
            yield f"{name}: the lake has no table {'.'.join(self.target)}"
            return
        yield f"{name}: {'equal' if self.equal else 'differs'}, {several(self.source_rows, 'row')} in the source, {self.lake_rows:,} in the lake"
        yield from (f"  column {column} is not in the lake" for column in self.columns_missing)
        yield from (f"  column {column} is in the lake only" for column in self.columns_extra)
        if self.missing or self.extra or self.different:
            least = "" if self.whole else "at least "
            yield f"  {least}{self.missing} missing, {self.extra} extra, {self.different} different"
        if self.unpromised:
            which = ", ".join(f"{count} {kind}" for kind, count in self.left_out.items())
            yield f"  no difference, because the publication does not send every kind of change: {which}"
        if self.renamed:
            yield f"  {self.reason}"
        for row in self.first:
            columns = f" in {', '.join(row.columns)}" if row.columns else ""
            yield f"  {row.kind}{columns}{f', md5 of the key {row.key}' if row.key else ''}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Report all tables; a verification, which compares at a barrier, has a number in the ledger and a position."""

    tables: tuple[TableComparison, ...]
    number: int | None = None
    lsn: Lsn | None = None

    @property
    def equal(self) -> bool:
        """Return whether every table is equal."""
        return all(table.equal for table in self.tables)

    @property
    def differing(self) -> list[str]:
        """Name the tables in which source and lake differ."""
        return self._named("differs")

    @property
    def unreadable(self) -> list[str]:
        """Name the tables of which a side could not be read."""
        return self._named("unreadable")

    @property
    def rows(self) -> int:
        """Count the rows of the source that were compared."""
        return sum(table.source_rows for table in self.tables)

    def summary(self) -> dict[str, object]:
        """Return the figures as plain data for logs and XCom."""
        outcomes = [each.outcome for each in self.tables]
        recorded = {} if self.number is None else {"verification": self.number, "lsn": str(self.lsn)}
        return {
            **recorded,
            "rows": self.rows,
            **{outcome: outcomes.count(outcome) for outcome in get_args(Outcome)},
            "differing": self.differing,
            "unread": self.unreadable,
        }

    def _named(self, outcome: Outcome) -> list[str]:
        return sorted({each.qualified for each in self.tables if each.outcome == outcome})

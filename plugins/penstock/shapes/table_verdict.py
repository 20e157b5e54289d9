"""The verdict over one table: what the lake follows, what it fetches, or why the table must pause. Pure.

The catalog now is held against the accepted shape. Each rule names its doubts; a table without doubt is
followed, one whose doubts are values of columns or rows of partitions fetches these, any other pauses with all of them as its reason.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from penstock.conditions import Remedy
from penstock.errors import Trouble
from penstock.lsn import Lsn
from penstock.shapes import column_changes, gone_partitions, object_names
from penstock.shapes.accepted import Accepted, GonePartition
from penstock.shapes.column_changes import ADDED_ONLY, ColumnChange, Following
from penstock.shapes.column_fetch import Doubt, Fetch, fetch_of
from penstock.shapes.key_change import key_change, key_doubts
from penstock.shapes.last_look import filter_changed, new_files, with_defaults
from penstock.shapes.mirror_column import MirrorColumn, reserved
from penstock.shapes.new_files import added_doubts, added_since, altered_doubts, file_doubts
from penstock.shapes.partition_doubts import gone_change, gone_doubts, partition_doubts
from penstock.shapes.partition_fetch import PartitionFetch, partition_fetch
from penstock.shapes.shape import Shape
from penstock.shapes.source_table import SourceTable


@dataclass(frozen=True, slots=True)
class Verdict:
    """Say what follows for one table: its columns and replica identity from now on and what was changed; or the reason to pause it.

    With `fetch` it needs no more than the values of some columns to become that, with `partitions` no more than the rows of
    some. `gone` are the partitions whose rows go, or are kept.
    """

    columns: tuple[MirrorColumn, ...] = ()
    identity: str | None = None
    changes: tuple[ColumnChange, ...] = ()
    reason: str | None = None
    slug: str = "schema-change"
    fetch: Fetch | None = None
    gone: tuple[GonePartition, ...] = ()
    partitions: PartitionFetch | None = None

    @property
    def trouble(self) -> Trouble:
        """Return why the table stops, where there is a reason."""
        remedy: Remedy = "read" if self.fetchable else "copy" if self.slug == "schema-change" else "person"
        return Trouble(self.slug, self.reason or "", remedy)

    @property
    def fetchable(self) -> bool:
        """Return whether less than a copy of the table is enough."""
        return self.fetch is not None or self.partitions is not None


def verdict(
    columns: Sequence[MirrorColumn],
    identity: str,
    accepted: Accepted,
    now: SourceTable | None,
    cleared: Iterable[int] = (),
    *,
    unused: Iterable[int] = (),
    emptied: Mapping[int, str] = MappingProxyType({}),
    kept: Collection[int] = (),
    explained: Collection[int] = (),
    following: Following = ADDED_ONLY,
    through: Lsn | None = None,
) -> Verdict:
    """Compare one table with what the ledger knows of it.

    `cleared` are leaves of which rows or stream have shown that their new file, or their arrival, hides nothing; `unused`
    those that are new, empty, and in no message of the stream, so that none of their files ever held a row that was sent.
    `emptied` are those with a new file and no row, with the snapshots that show it. `kept` are columns of which it is told that
    no command has changed their values, nor set the table unlogged, nor emptied a partition. `explained` are leaves whose new
    file is that of a TRUNCATE in the stream, with no row that was rewritten since. `through` is how far the lake has the table.
    """
    if now is None:
        return Verdict(reason="the table was dropped, or left the publication")
    if clash := reserved(column.name for column in now.columns):
        why = (
            f"it has a column {clash} now, a name that the lake's tables keep for themselves: rename it, then resync it"
        )
        return Verdict(reason=why, slug="target-clash")
    if following.sends_old and (unfound := object_names.problem(now)):
        return Verdict(reason=f"{unfound}; {object_names.remedy(now)}, then resync it", slug="no-usable-identity")
    before = accepted.shape
    now = with_defaults(before, now)
    blank = frozenset(unused)
    known = blank.union(cleared)
    followed = column_changes.follow(columns, now, following, kept)
    gone = _gone(before, now, emptied)
    doubts = [
        *_name_doubts(before, now),
        *followed.doubts,
        *_value_doubts(columns, before, now, known, kept=kept, explained=explained),
        *_whole_row_doubts(followed.columns, now),
        *_filter_doubts(before, now),
        *_type_doubts(before, now),
        *gone_doubts(accepted, now, gone, following),
        *partition_doubts(before, now, known, blank),
        *file_doubts(before, now, known.union(emptied, _rewritten(before, now) if kept else ())),
    ]
    key = key_change(columns, identity, before, now, following)
    fetch = fetch_of(doubts, accepted, now) if doubts and key is not None and following.columns else None
    if key is None or (doubts and not _found_by_both_keys(key, columns, fetch)):
        doubts, fetch = [*doubts, *key_doubts(columns, identity, now)], None
    reason = "; ".join(dict.fromkeys(doubt.text for doubt in doubts)) or None
    keep, partitions = following.partitions == "keep", None
    if doubts and fetch is None and following.columns:
        partitions = partition_fetch(doubts, accepted, now, gone, keep=keep, through=through or Lsn(0))
    if doubts and fetch is None and partitions is None:
        return Verdict(reason=reason)
    gone = tuple(replace(each, kept=keep) for each in gone)
    changes = (*followed.changes, *(key or ()), *map(gone_change, gone))
    return Verdict(followed.columns, now.identity, changes, reason, fetch=fetch, gone=gone, partitions=partitions)


def _found_by_both_keys(key: Sequence[ColumnChange], columns: Sequence[MirrorColumn], fetch: Fetch | None) -> bool:
    """Return whether changes before a fetch find their rows by a key that it does not read, as it finds them by the present one."""
    if all(each.rule == "replica-identity" for each in key):
        return True
    before = {column.attnum for column in columns if column.key}
    return bool(before) and fetch is not None and not before & fetch.attnums


def _gone(before: Shape, now: SourceTable, emptied: Mapping[int, str]) -> tuple[GonePartition, ...]:
    if now.kind != "p":
        return ()
    return (*gone_partitions.missing(before, now), *gone_partitions.emptied(before, emptied))


def _rewritten(before: Shape, now: SourceTable) -> Iterator[int]:
    """Yield the leaves that were there at the last look."""
    yield from (leaf.oid for leaf in now.leaves if leaf.oid in before.leaves)


def _name_doubts(before: Shape, now: SourceTable) -> Iterator[Doubt]:
    if before.qualified != now.qualified:
        yield Doubt(
            f"the table was renamed from {before.qualified} to {now.qualified}, and the lake's name shows its rows still"
        )


def _value_doubts(
    columns: Sequence[MirrorColumn],
    before: Shape,
    now: SourceTable,
    cleared: frozenset[int],
    *,
    kept: Collection[int],
    explained: Collection[int],
) -> Iterator[Doubt]:
    """Name the columns of which old rows may show something that was never sent."""
    yield from _hidden_doubts(columns, before, now)
    if new_files(before, now, cleared):
        yield from altered_doubts(columns, before, now, kept)
    if new_files(before, now, frozenset(explained)):
        yield from added_doubts(columns, now)


def _hidden_doubts(columns: Sequence[MirrorColumn], before: Shape, now: SourceTable) -> Iterator[Doubt]:
    """Name columns that were there and not in the stream: what their old rows show is in no file."""
    for column in added_since(columns, now):
        if column.attnum in before.hidden or column.name in before.hidden.values():
            yield Doubt(
                f"column {column.name} was generated or not published, and is in the stream now: old rows show stored values",
                column.attnum,
            )


def _whole_row_doubts(columns: Sequence[MirrorColumn], now: SourceTable) -> Iterator[Doubt]:
    """Name a dropped column that the lake keeps, where whole rows are to tell which of the lake's are meant."""
    kept = [column.name for column in columns if column.dropped]
    if kept and now.identity == "f" and not now.key:
        yield Doubt(
            f"column {kept[0]} was dropped, and without a key only whole rows tell which of the lake's are meant"
        )


def _filter_doubts(before: Shape, now: SourceTable) -> Iterator[Doubt]:
    if filter_changed(before, now):
        yield Doubt("the publication's row filter changed")


def _type_doubts(before: Shape, now: SourceTable) -> Iterator[Doubt]:
    """Name enums and composite types whose stored values may show something else than at the last look."""
    for oid, labels in now.enums.items():
        same_labels = _within(before.enums.get(oid, ()), labels)
        if not (same_labels and _within(before.part_versions.get(oid, ()), now.part_versions.get(oid, ()))):
            yield Doubt(f"a label of enum {now.part_names.get(oid, oid)} was renamed or moved, perhaps back", enum=oid)
    for oid in now.composites:
        if _other_attributes(before, now, oid):
            text = f"composite type {now.part_names.get(oid, oid)} got or lost an attribute, perhaps both"
            yield from (Doubt(text, column.attnum) for column in now.columns if oid in column.parts)


def _other_attributes(before: Shape, now: SourceTable, oid: int) -> bool:
    """Return whether values of a composite type that was there may have another text than at the last look.

    It has their attributes in order, and no name. An attribute has one number for ever, and no other type while a column holds it.
    """
    known = before.composites.get(oid)
    if known is None:
        return False
    numbers = len(before.part_versions.get(oid, ()))
    types = [attribute[1:] for attribute in known]
    return numbers != len(now.part_versions.get(oid, ())) or types != [each[1:] for each in now.composites[oid]]


def _within(before: Sequence[str], after: Sequence[str]) -> bool:
    """Return whether all of before is there in the same order, whatever came between."""
    return [each for each in after if each in before] == list(before)

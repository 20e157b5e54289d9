"""What became of a table between the shape that the ledger has accepted and the one that a look has found: typed changes. Pure.

Columns are known by attnum: a new name is a rename, whatever else has that name now. The versions of the catalog's rows show also what
was changed and changed back.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from penstock.shapes import changes
from penstock.shapes.accepted import Accepted, GonePartition, TableFacts, gone_partitions
from penstock.shapes.mirror_column import MirrorColumn, reserved
from penstock.shapes.row_identity import strange_partitions, unfound
from penstock.shapes.source_table import Leaf, Shape, SourceColumn, SourceTable
from penstock.values.pgtype import PgType


def diff(known: TableFacts, now: SourceTable, empty_in: Mapping[int, str]) -> tuple[changes.Change, ...]:
    """Return what changed since the accepted shape; `empty_in` are leaves without a row, with the snapshots that show it."""
    before = known.accepted.shape
    return (
        *_unfit(now),
        *_columns(known, now),
        *_types(before, now),
        *(_partitions(known.accepted, now, empty_in) if now.kind == "p" else ()),
        *(each for each in changed_files(before, now) if each.leaf.oid not in empty_in),
        *_key(known, now),
    )


def with_shown_defaults(before: Shape, now: SourceTable) -> SourceTable:
    """Return a table with what rows that the lake has show of columns added since: partitions that were there say it.

    One that was attached may have had a column of the same name, with another default, before the table had it.
    """
    if now.kind != "p":
        return now
    shown = {name: text for leaf in now.leaves if leaf.oid in before.leaves for name, text in leaf.missing}
    columns = tuple(
        each if each.attnum in before.columns else replace(each, missing_text=shown.get(each.name))
        for each in now.columns
    )
    return replace(now, columns=columns)


def changed_files(before: Shape, now: SourceTable) -> Iterator[changes.FileChanged]:
    """Yield the leaves with a new file: a TRUNCATE, an ALTER TABLE that rewrites, and VACUUM FULL all make one."""
    for leaf in now.leaves:
        if file_before(before, leaf) != leaf.file:
            yield changes.FileChanged(leaf, leaf.oid not in before.leaves, now.changes_silently, now.kind == "p")


def file_before(before: Shape, leaf: Leaf) -> int:
    """Return the file that a leaf had: a table is made with a file of its own oid, and gets another when it is rewritten."""
    known = before.leaves.get(leaf.oid)
    if known is not None:
        return known.file
    return leaf.oid if leaf.kind == "r" and not leaf.attached else leaf.file


def added_columns(columns: Sequence[MirrorColumn], now: SourceTable) -> list[SourceColumn]:
    """Return the columns that were not in the stream at the last look."""
    before = {column.attnum for column in columns}
    return [column for column in now.columns if column.attnum not in before]


def altered_columns(columns: Sequence[MirrorColumn], before: Shape, now: SourceTable) -> list[SourceColumn]:
    """Return the known columns whose catalog row is another one than at the last look."""
    known = {column.attnum for column in columns} & before.versions.keys()
    return [each for each in now.columns if each.attnum in known and before.versions[each.attnum] != each.version]


def grown_enums(before: Shape, now: SourceTable) -> list[int]:
    """Return the enums of a table that have more labels than at the last look, or came since."""
    return [oid for oid, labels in now.enums.items() if len(before.enums.get(oid, ())) < len(labels)]


def is_written_otherwise(before: Shape, now: SourceTable) -> bool:
    """Return whether labels or attributes of a table's types have changed, under no lock of the table: stored values have other texts since."""
    texts = changes.LabelsChanged | changes.AttributesChanged
    return any(isinstance(each, texts) for each in _types(before, now))


def attached_leaves(before: Shape, now: SourceTable) -> Iterator[changes.LeafAttached]:
    """Yield the partitions that are new and were tables of their own at the last look."""
    known = {version for leaf in before.leaves.values() for version in leaf.chain}
    for leaf in now.leaves:
        if leaf.oid not in before.leaves and not known.issuperset(leaf.attached):
            yield changes.LeafAttached(leaf)


def _unfit(now: SourceTable) -> Iterator[changes.TableUnfit]:
    if clash := reserved(column.name for column in now.columns):
        why = (
            f"it has a column {clash} now, a name that the lake's tables keep for themselves: rename it, then resync it"
        )
        yield changes.TableUnfit(why, "target-clash")
    if found := unfound(now):
        yield changes.TableUnfit(f"{'; '.join(found)}, then resync it", "no-usable-identity", for_old_rows=True)


def _columns(known: TableFacts, now: SourceTable) -> Iterator[changes.Change]:
    before, columns = known.accepted.shape, known.columns
    if before.qualified != now.qualified:
        yield changes.TableRenamed(before.qualified, now.qualified)
    there = {column.attnum: column for column in now.columns}
    for column in columns:
        if not column.dropped:
            yield from _column(column, there.get(column.attnum), now)
    files = frozenset(each.leaf.oid for each in changed_files(before, now))
    for added in added_columns(columns, now):
        hidden = added.attnum in before.hidden or added.name in before.hidden.values()
        yield changes.ColumnAdded(added, files, hidden)
    yield from (changes.ColumnAltered(column, files) for column in altered_columns(columns, before, now))
    missing = tuple(column for column in columns if column.dropped or column.attnum not in there)
    if missing and now.identity == "f" and not now.key:
        yield changes.WholeRowsCompared(missing)


def _column(column: MirrorColumn, found: SourceColumn | None, now: SourceTable) -> Iterator[changes.Change]:
    if found is None:
        yield changes.ColumnGone(column, column.attnum in now.hidden)
        return
    if found.name != column.name:
        yield changes.ColumnRenamed(column, found)
    if not _same_type(found.type, column.type):
        yield changes.ColumnRetyped(column, found)


def _same_type(one: PgType | None, other: PgType | None) -> bool:
    if one is None or other is None:
        return one is other
    return (
        (one.oid, one.typmod, one.kind) == (other.oid, other.typmod, other.kind)
        and _same_type(one.base, other.base)
        and _same_type(one.element, other.element)
    )


def _types(before: Shape, now: SourceTable) -> Iterator[changes.Change]:
    if before.filter != now.filter:
        yield changes.FilterChanged()
    for oid, labels in now.enums.items():
        same_rows = _within(before.part_versions.get(oid, ()), now.part_versions.get(oid, ()))
        if not (same_rows and _within(before.enums.get(oid, ()), labels)):
            yield changes.LabelsChanged(oid, str(now.part_names.get(oid, oid)))
    for oid in now.composites:
        if _other_attributes(before, now, oid):
            name = str(now.part_names.get(oid, oid))
            yield from (changes.AttributesChanged(name, column) for column in now.columns if oid in column.parts)


def _within(before: Sequence[str], after: Sequence[str]) -> bool:
    """Return whether all of before is there in the same order, whatever came between."""
    return [each for each in after if each in before] == list(before)


def _other_attributes(before: Shape, now: SourceTable, oid: int) -> bool:
    """Return whether values of a composite type that was there may have another text than at the last look.

    It has their attributes in order, and no name. An attribute has one number for ever, and no other type while a column holds it.
    """
    known = before.composites.get(oid)
    if known is None:
        return False
    numbers = len(before.part_versions.get(oid, ()))
    types = [attribute[1:] for attribute in now.composites[oid]]
    return numbers != len(now.part_versions.get(oid, ())) or types != [each[1:] for each in known]


def _partitions(accepted: Accepted, now: SourceTable, empty_in: Mapping[int, str]) -> Iterator[changes.Change]:
    before = accepted.shape
    for gone in gone_partitions(before, now, empty_in):
        yield changes.LeafGone(gone, tuple(_unclear(accepted, now, gone)))
    yield from attached_leaves(before, now)
    strange = {leaf.oid for leaf in strange_partitions(now)}
    for leaf in now.leaves:
        yield from (changes.LeafChanged(leaf, how) for how in _changed_leaf(before, leaf, strange=leaf.oid in strange))


def _unclear(accepted: Accepted, now: SourceTable, gone: GonePartition) -> Iterator[str]:
    if not gone.separate(now):
        yield "its bounds do not tell them from others in the lake"
    for other in accepted.kept:
        if not other.apart(gone.bound):
            yield f"the lake keeps rows of {other.name} within the same bounds, which would go with them"


def _changed_leaf(before: Shape, leaf: Leaf, *, strange: bool) -> Iterator[str]:
    known = before.leaves.get(leaf.oid)
    if known and known.chain != leaf.chain:
        yield "was detached and attached again, and may have changed meanwhile"
    if leaf.persistence != "p" and (known is None or known.persistence == "p"):
        yield "is unlogged: the stream has none of its changes"
    if leaf.kind == "f" and known is None:
        yield "is a foreign table: the stream has none of its changes"
    if strange and (known is None or (known.identity, set(known.key)) != (leaf.identity, set(leaf.key))):
        yield "has another replica identity than the partitioned table"
    if known and leaf.altered_by is not None and leaf.altered_by != known.altered_by:
        yield "was altered and has a unique index: it may have had another replica identity for a while"


def _key(known: TableFacts, now: SourceTable) -> Iterator[changes.KeyChanged]:
    before = {column.attnum: column.name for column in known.columns if column.key}
    after = {column.attnum: column.name for column in now.columns if column.key}
    if before.keys() != after.keys() or known.identity != now.identity:
        plain = (known.accepted.shape.kind, now.kind) == ("r", "r")
        yield changes.KeyChanged(known.identity, now.identity, before, after, plain, now.late_key)

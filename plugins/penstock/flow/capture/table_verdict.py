"""The verdict over one table's catalog entries: what was added and is followed, or why the table must pause. Pure.

The ledger keeps a digest of the last look: values, and the versions of the catalog's rows, which show also what was
changed and changed back. A new file together with a changed column means that stored values changed; what could
mean rows that the stream does not carry is a reason until the caller has looked at the rows and `cleared` that leaf.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from penstock.flow.capture import column_changes, gone_partitions
from penstock.flow.capture.column_changes import ADDED_ONLY, ColumnChange, Following, Rule
from penstock.flow.capture.column_fetch import Doubt, Fetch, fetch_of
from penstock.flow.capture.gone_partitions import GonePartition
from penstock.lake.columns import reserved
from penstock.lake.mirror_column import MirrorColumn
from penstock.source.catalog import SourceColumn, SourceTable
from penstock.source.replica_identity import strange_partitions
from penstock.source.tables import Attach, Leaf

_IDENTITIES = {"d": "the primary key", "i": "an index", "f": "full"}
_FILE = 2  # place of the file's number in a leaf's entry of a digest


@dataclass(frozen=True, slots=True)
class Verdict:
    """Say what follows for one table: its columns and replica identity from now on and what was changed; or the reason to pause it.

    With `fetch` it needs no more than the values of some columns to become that. `gone` are the partitions whose rows go, or are kept.
    """

    columns: tuple[MirrorColumn, ...] = ()
    identity: str | None = None
    changes: tuple[ColumnChange, ...] = ()
    reason: str | None = None
    slug: str = "schema-change"
    fetch: Fetch | None = None
    gone: tuple[GonePartition, ...] = ()


@dataclass(frozen=True, slots=True)
class Suspects:
    """Name the leaves whose rows decide: those with a new file, and those that were not there at the last look.

    `rewritten` are partitions that are new and have another file than the one that they were made with.
    """

    files: tuple[Leaf, ...] = ()
    arrived: tuple[tuple[Leaf, tuple[Attach, ...]], ...] = ()
    rewritten: tuple[Leaf, ...] = ()


def verdict(
    columns: Sequence[MirrorColumn],
    identity: str,
    digest: Mapping[str, Any],
    now: SourceTable | None,
    cleared: Iterable[int] = (),
    *,
    unused: Iterable[int] = (),
    emptied: Mapping[int, str] = MappingProxyType({}),
    following: Following = ADDED_ONLY,
) -> Verdict:
    """Compare one table with what the ledger knows of it.

    `cleared` are leaves of which rows or stream have shown that their new file, or their arrival, hides nothing; `unused`
    those that are new, empty, and in no message of the stream, so that none of their files ever held a row that was sent.
    `emptied` are those with a new file and no row, with the snapshots that show it.
    """
    if now is None:
        return Verdict(reason="the table was dropped, or left the publication")
    if clash := reserved(column.name for column in now.columns):
        why = (
            f"it has a column {clash} now, a name that the lake's tables keep for themselves: rename it, then resync it"
        )
        return Verdict(reason=why, slug="target-clash")
    blank = frozenset(unused)
    known = frozenset(cleared) | blank
    gone = (*gone_partitions.missing(digest, now), *gone_partitions.emptied(digest, emptied)) if now.kind == "p" else ()
    followed = column_changes.follow(columns, now, following)
    key = _key_change(columns, identity, digest, now, following)
    doubts = [
        *map(Doubt, _name_reasons(digest, now)),
        *followed.doubts,
        *_hidden_reasons(columns, digest, now),
        *(_altered_reasons(columns, digest, now) if _new_files(digest, now, known) else ()),
        *(_added_reasons(columns, now) if _new_files(digest, now, frozenset()) else ()),
        *map(Doubt, _whole_row_reasons(followed.columns, now)),
        *map(Doubt, _filter_reasons(digest, now)),
        *_type_reasons(digest, now),
        *map(Doubt, _gone_reasons(digest, now, gone, following)),
        *map(Doubt, _leaf_reasons(digest, now, known, blank, frozenset(emptied))),
    ]
    key_changed = any(each.rule != "replica-identity" for each in key or ())
    if key is None or (doubts and key_changed):  # what is fetched is found by one key
        doubts += map(Doubt, _identity_reasons(columns, identity, now))
    reason = "; ".join(dict.fromkeys(doubt.text for doubt in doubts)) or None
    fetch = fetch_of(doubts, digest, now) if doubts and following.columns else None
    if doubts and fetch is None:
        return Verdict(reason=reason)
    gone = tuple(replace(each, kept=following.partitions == "keep") for each in gone)
    changes = (*followed.changes, *(key or ()), *map(_gone_change, gone))
    return Verdict(followed.columns, now.identity, changes, reason, fetch=fetch, gone=gone)


def suspects(columns: Sequence[MirrorColumn], digest: Mapping[str, Any], now: SourceTable) -> Suspects:
    """Name the leaves whose rows have to be looked at before the verdict; for most looks there are none."""
    arrived = tuple(_attached(digest, now)) if now.kind == "p" else ()
    files = _new_files(digest, now, frozenset())
    if not (_may_change_silently(now) or values_changed(columns, digest, now)):
        files = ()
    return Suspects(files, arrived, _rewritten(digest, now) if now.kind == "p" else ())


def _rewritten(digest: Mapping[str, Any], now: SourceTable) -> tuple[Leaf, ...]:
    before = digest.get("leaves", {})
    new = (leaf for leaf in now.leaves if leaf.kind == "r" and str(leaf.oid) not in before)
    return tuple(leaf for leaf in new if leaf.relfilenode != leaf.oid)


def values_changed(columns: Sequence[MirrorColumn], digest: Mapping[str, Any], now: SourceTable) -> bool:
    """Return whether columns changed in a way that means other stored values if a file is new as well."""
    return any(_altered_reasons(columns, digest, now)) or any(_added_reasons(columns, now))


def altered_with_its_rows(columns: Sequence[MirrorColumn], digest: Mapping[str, Any], now: SourceTable) -> bool:
    """Return whether a transaction that wrote a new file has altered a column too, or a column is new.

    Where another one has altered it, and the stream shows that the file is a TRUNCATE's, no row is older than that file.
    """
    files = {str(leaf.changed_by) for leaf in _new_files(digest, now, frozenset())}
    versions = _versions(digest, "columns")
    known = {column.attnum for column in columns}
    altered = (each for each in now.columns if each.attnum in known and versions.get(str(each.attnum)) != each.version)
    return any(each.version in files for each in altered) or any(_added_reasons(columns, now))


def filter_changed(digest: Mapping[str, Any], now: SourceTable) -> bool:
    """Return whether the publication sends other rows."""
    return bool(digest["filter"] != now.filter_digest)


def vanished_partition(name: str) -> str:
    """Say why rows of a partition that came and went between two looks make the table differ."""
    return f"partition {name} took rows and was detached or dropped with them between two looks"


def _added(columns: Sequence[MirrorColumn], now: SourceTable) -> list[SourceColumn]:
    before = {column.attnum for column in columns}
    return [column for column in now.columns if column.attnum not in before]


def _versions(digest: Mapping[str, Any], part: str) -> Any:
    """Return what a digest says of the versions of the catalog's own rows."""
    return digest["versions"][part]


def _name_reasons(digest: Mapping[str, Any], now: SourceTable) -> Iterator[str]:
    before = _versions(digest, "name")
    if before != [now.schema, now.name]:
        yield f"the table was renamed from {'.'.join(before)} to {now.qualified}, and the lake's name shows its rows still"


def _hidden_reasons(columns: Sequence[MirrorColumn], digest: Mapping[str, Any], now: SourceTable) -> Iterator[Doubt]:
    """Name columns that were there and not in the stream: what their old rows show is in no file."""
    hidden = _versions(digest, "hidden")
    for column in _added(columns, now):
        if column.attnum in hidden or column.name in digest["hidden"]:
            yield Doubt(
                f"column {column.name} was generated or not published, and is in the stream now: old rows show stored values",
                column.attnum,
            )


def _new_files(digest: Mapping[str, Any], now: SourceTable, cleared: frozenset[int]) -> tuple[Leaf, ...]:
    """Return the leaves with another file than at the last look, or, where they are new, than they were made with."""
    return tuple(
        leaf for leaf in now.leaves if leaf.oid not in cleared and _file_before(digest, leaf) != leaf.relfilenode
    )


def _file_before(digest: Mapping[str, Any], leaf: Leaf) -> Any:
    """Return the file that a leaf had: a table is made with a file of its own oid, and gets another when it is rewritten."""
    before = digest["leaves"].get(str(leaf.oid))
    if before is not None:
        return before[_FILE]
    return leaf.oid if leaf.kind == "r" and not leaf.attached else leaf.relfilenode


def _altered_reasons(columns: Sequence[MirrorColumn], digest: Mapping[str, Any], now: SourceTable) -> Iterator[Doubt]:
    """Name the columns of which a new file may hold other values than before."""
    versions = _versions(digest, "columns")
    by_attnum = {column.attnum: column for column in now.columns}
    for column in columns:
        found, before = by_attnum.get(column.attnum), versions.get(str(column.attnum))
        if found is not None and before is not None and before != found.version:
            yield Doubt(
                f"column {column.name} was altered and the table rewritten: its old rows may hold other values",
                column.attnum,
            )


def _added_reasons(columns: Sequence[MirrorColumn], now: SourceTable) -> Iterator[Doubt]:
    """Name the added columns of which a new file may hold values: `vacuum full`, too, writes a default into old rows."""
    for added in _added(columns, now):
        if added.missing_text is None:
            yield Doubt(
                f"column {added.name} was added and the table rewritten: a default may have been written into every row",
                added.attnum,
            )


def _may_change_silently(now: SourceTable) -> bool:
    """Return whether rows can come and go without the stream. A table that is published by name cannot be set unlogged."""
    return now.kind == "p" or not any(each.startswith("table ") for each in now.membership)


def _key_change(
    columns: Sequence[MirrorColumn], identity: str, digest: Mapping[str, Any], now: SourceTable, following: Following
) -> tuple[ColumnChange, ...] | None:
    """Return what became of the key and the replica identity, None where that is not followed: of partitions each has its own.

    Each change of a row says itself which columns it is found by.
    """
    before, after = _key(columns), _key(now.columns)
    if before.keys() == after.keys() and identity == now.identity:
        return ()
    if not following.columns:
        return None
    if before and before.keys() == after.keys() and "n" not in (identity, now.identity):
        text = f"the replica identity is {_IDENTITIES[now.identity]} now, with the same key"
        return (ColumnChange("replica-identity", text),)
    if now.kind != "r" or digest.get("kind") != "r":
        return None
    text = f"the key is {_named(after, now.identity)} now, it was {_named(before, identity)}"
    return (ColumnChange("drop-key" if now.identity == "n" else "change-key", text),)


def _key(columns: Iterable[MirrorColumn | SourceColumn]) -> dict[int, str]:
    """Return the names of the key's columns by attnum."""
    return {column.attnum: column.name for column in columns if column.key}


def _named(key: Mapping[int, str], identity: str) -> str:
    if key:
        return f"({', '.join(key.values())})"
    return "the whole row" if identity == "f" else "none, for inserts only"


def _whole_row_reasons(columns: Sequence[MirrorColumn], now: SourceTable) -> Iterator[str]:
    """Name a dropped column that the lake keeps, where whole rows are to tell which of the lake's are meant."""
    kept = [column.name for column in columns if column.dropped]
    if kept and now.identity == "f" and not now.key:
        yield f"column {kept[0]} was dropped, and without a key only whole rows tell which of the lake's are meant"


def _identity_reasons(columns: Sequence[MirrorColumn], identity: str, now: SourceTable) -> Iterator[str]:
    before = {column.attnum for column in columns if column.key}
    if identity != now.identity or before != {column.attnum for column in now.columns if column.key}:
        yield "the replica identity changed"


def _filter_reasons(digest: Mapping[str, Any], now: SourceTable) -> Iterator[str]:
    if filter_changed(digest, now):
        yield "the publication's row filter changed"


def _type_reasons(digest: Mapping[str, Any], now: SourceTable) -> Iterator[Doubt]:
    versions = _versions(digest, "parts")
    for oid, labels in now.enums.items():
        known = digest["enums"].get(str(oid), [])
        before = versions.get(str(oid), [])
        after = now.part_versions.get(oid, ())
        if [label for label in labels if label in known] != known or [
            each for each in after if each in before
        ] != before:
            yield Doubt(f"a label of enum {now.part_names.get(oid, oid)} was renamed or moved, perhaps back", enum=oid)
    for oid, attributes in now.composites.items():
        known = digest["composites"].get(str(oid))
        before = versions.get(str(oid))
        changed = known is not None and known != [list(attribute) for attribute in attributes]
        if changed or (before is not None and before != list(now.part_versions.get(oid, ()))):
            yield Doubt(f"composite type {now.part_names.get(oid, oid)} changed its attributes")


def _attached(digest: Mapping[str, Any], now: SourceTable) -> Iterator[tuple[Leaf, tuple[Attach, ...]]]:
    """Yield the leaves that are new and were tables of their own before, with each ATTACH since the last look."""
    before = digest["leaves"]
    known = {version for leaf in _versions(digest, "leaves").values() for version in leaf["chain"]}
    for leaf in now.leaves:
        since = tuple(each for each in leaf.attached if each.version not in known)
        if since and str(leaf.oid) not in before:
            yield leaf, since


def _leaf_reasons(
    digest: Mapping[str, Any],
    now: SourceTable,
    cleared: frozenset[int],
    unused: frozenset[int],
    emptied: frozenset[int],
) -> Iterator[str]:
    if now.kind == "p":
        yield from _membership_reasons(digest, now, cleared, unused)
        yield from _logging_reasons(digest, now)
        yield from _partition_identity_reasons(digest, now)
        yield from _flip_reasons(digest, now)
    if _may_change_silently(now):
        what = "partition " if now.kind == "p" else ""
        for leaf in _new_files(digest, now, cleared | emptied):
            yield (
                f"{what}{leaf.name} has a new file without the rows of before: it was truncated by itself, rewritten, "
                "or unlogged for a while"
            )


def _gone_reasons(
    digest: Mapping[str, Any], now: SourceTable, gone: Iterable[GonePartition], following: Following
) -> Iterator[str]:
    for each in gone:
        what = f"partition {each.name} was {_lost(each)} with its rows"
        if following.partitions is None:
            # what is not ready yet is copied again, whatever was chosen
            yield f"{what}, and lake.on_dropped_partition does not say what follows" if following.columns else what
        elif following.partitions == "follow":
            yield from _follow_reasons(digest, now, each, what)


def _follow_reasons(digest: Mapping[str, Any], now: SourceTable, each: GonePartition, what: str) -> Iterator[str]:
    if not each.separate(now):
        yield f"{what}, and its bounds do not tell them from others in the lake"
    for other in gone_partitions.kept(digest):
        if not other.apart(each.bound):
            yield f"{what}, and the lake keeps rows of {other.name} within the same bounds, which would go with them"


def _gone_change(gone: GonePartition) -> ColumnChange:
    rule: Rule = "drop-partition" if gone.snapshot is None else "truncate-partition"
    rows = "the lake keeps its rows" if gone.kept else "its rows go"
    return ColumnChange(rule, f"partition {gone.name} was {_lost(gone)}, and {rows}")


def _lost(gone: GonePartition) -> str:
    return "detached or dropped" if gone.snapshot is None else "truncated by itself"


def _membership_reasons(
    digest: Mapping[str, Any], now: SourceTable, cleared: frozenset[int], unused: frozenset[int]
) -> Iterator[str]:
    for leaf, _ in _attached(digest, now):
        if leaf.oid not in cleared:
            yield f"partition {leaf.name} was attached with rows that it had"
        elif leaf.kind == "r" and leaf.relfilenode != leaf.oid and leaf.oid not in unused:
            # what is empty now may have taken rows since
            yield f"partition {leaf.name} was attached and rewritten or truncated: rows that it took may be gone"
    for leaf in now.leaves:
        known = _leaf_version(digest, leaf)
        if known is not None and known["chain"] != list(leaf.chain):
            yield f"partition {leaf.name} was detached and attached again, and may have changed meanwhile"


def _logging_reasons(digest: Mapping[str, Any], now: SourceTable) -> Iterator[str]:
    for leaf in now.leaves:
        known = _leaf_version(digest, leaf)
        if leaf.persistence != "p" and (known is None or known["persistence"] == "p"):
            yield f"partition {leaf.name} is unlogged: the stream has none of its changes"
        if leaf.kind == "f" and known is None:
            yield f"partition {leaf.name} is a foreign table: the stream has none of its changes"


def _partition_identity_reasons(digest: Mapping[str, Any], now: SourceTable) -> Iterator[str]:
    """Name partitions that log other old rows than the table's key needs, when that is new."""
    for leaf in strange_partitions(now):
        known = _leaf_version(digest, leaf)
        if known is None or (known["identity"], known["key"]) != (leaf.identity, sorted(leaf.key)):
            yield f"partition {leaf.name} has another replica identity than the partitioned table"


def _flip_reasons(digest: Mapping[str, Any], now: SourceTable) -> Iterator[str]:
    """Name partitions of a table without a key that may have logged less than whole old rows for a while."""
    for leaf in now.leaves:
        known = _leaf_version(digest, leaf)
        altered_by = now.altered_by(leaf)
        if known is not None and altered_by is not None and altered_by != known["altered_by"]:
            yield f"partition {leaf.name} was altered and has a unique index: it may have had another replica identity for a while"


def _leaf_version(digest: Mapping[str, Any], leaf: Leaf) -> Any:
    return _versions(digest, "leaves").get(str(leaf.oid))

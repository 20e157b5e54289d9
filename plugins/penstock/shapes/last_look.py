"""What the ledger's digest of the last look says of a table, held against the catalog now. Pure.

It keeps values, and the versions of the catalog's rows, which show also what was changed and changed back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from penstock.shapes.source_table import Attach, Leaf, SourceTable

_FILE = 2  # place of the file's number in a leaf's entry of a digest


def catalog_versions(digest: Mapping[str, Any], part: str) -> Any:
    """Return what a digest says of the versions of the catalog's own rows."""
    return digest["versions"][part]


def leaf_version(digest: Mapping[str, Any], leaf: Leaf) -> Any:
    """Return what a digest says of a leaf's own catalog rows, None where the leaf is new."""
    return catalog_versions(digest, "leaves").get(str(leaf.oid))


def filter_changed(digest: Mapping[str, Any], now: SourceTable) -> bool:
    """Return whether the publication sends other rows."""
    return bool(digest["filter"] != now.filter_digest)


def new_files(digest: Mapping[str, Any], now: SourceTable, cleared: frozenset[int]) -> tuple[Leaf, ...]:
    """Return the leaves with another file than at the last look, or, where they are new, than they were made with."""
    return tuple(
        leaf for leaf in now.leaves if leaf.oid not in cleared and file_before(digest, leaf) != leaf.relfilenode
    )


def file_before(digest: Mapping[str, Any], leaf: Leaf) -> Any:
    """Return the file that a leaf had: a table is made with a file of its own oid, and gets another when it is rewritten."""
    before = digest["leaves"].get(str(leaf.oid))
    if before is not None:
        return before[_FILE]
    return leaf.oid if leaf.kind == "r" and not leaf.attached else leaf.relfilenode


def rewritten(digest: Mapping[str, Any], now: SourceTable) -> tuple[Leaf, ...]:
    """Return the partitions that are new and have another file than the one that they were made with."""
    before = digest.get("leaves", {})
    new = (leaf for leaf in now.leaves if leaf.kind == "r" and str(leaf.oid) not in before)
    return tuple(leaf for leaf in new if leaf.relfilenode != leaf.oid)


def with_defaults(digest: Mapping[str, Any], now: SourceTable) -> SourceTable:
    """Return a table with what rows that the lake has show of columns added since: partitions that were there say it.

    One that was attached may have had a column of the same name, with another default, before the table had it.
    """
    if now.kind != "p":
        return now
    before, there = catalog_versions(digest, "columns"), catalog_versions(digest, "leaves")
    shown = {name: text for leaf in now.leaves if str(leaf.oid) in there for name, text in leaf.missing}
    columns = tuple(
        each if str(each.attnum) in before else replace(each, missing_text=shown.get(each.name)) for each in now.columns
    )
    return replace(now, columns=columns)


def attached(digest: Mapping[str, Any], now: SourceTable) -> Iterator[tuple[Leaf, tuple[Attach, ...]]]:
    """Yield the leaves that are new and were tables of their own before, with each ATTACH since the last look."""
    before = digest["leaves"]
    known = {version for leaf in catalog_versions(digest, "leaves").values() for version in leaf["chain"]}
    for leaf in now.leaves:
        since = tuple(each for each in leaf.attached if each.version not in known)
        if since and str(leaf.oid) not in before:
            yield leaf, since

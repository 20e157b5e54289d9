"""One digest per published table of all that the catalog says of it, made by the server, for a look that finds nothing new.

It is made of the rows that `catalog.describe` puts a table together from, by the same statements: as long as it is the same,
so is the table. A thousand tables then cost a thousand short rows instead of a description of each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from psycopg import sql

from penstock.shapes.shape import SHAPE_LAYOUT
from penstock.source import types
from penstock.source.session import SourceSession, translating
from penstock.source.types import Types
from penstock.sql import load


@dataclass(frozen=True, slots=True)
class Stamps:
    """Hold the digest of each published table by oid, and the oids of those that the publication names by themselves."""

    by_oid: Mapping[int, str] = field(default_factory=dict)
    listed: frozenset[int] = frozenset()

    def same(self, known: Mapping[int, str]) -> frozenset[int]:
        """Return the tables whose digest is the known one."""
        return frozenset(oid for oid, stamp in self.by_oid.items() if known.get(oid) == stamp)


def read_stamps(conn: SourceSession, publication: str) -> Stamps:
    """Return the digests of the tables that a publication publishes; raises SourceError."""
    members = _rows(conn, "catalog/member_stamps", {"published": "catalog/published"}, publication=publication)
    oids = [oid for oid, _, _ in members]
    parts = {"heaps": "catalog/heaps", "columns": "catalog/columns"}
    found = {row[0]: row[1:] for row in _rows(conn, "catalog/table_stamps", parts, oids=oids, sizes=False)}
    known = types.read_types(conn, {oid for _, _, used in found.values() for oid in used})
    missing = _missing(conn, [leaf for _, leaves, _ in found.values() for leaf in leaves or ()])
    made_of: dict[tuple[int, ...], str] = {}
    stamps = {
        oid: _digest(version, rows, _types(known, tuple(used), made_of), *(missing.get(leaf) for leaf in leaves or ()))
        for oid, version, _ in members
        if oid in found
        for rows, leaves, used in [found[oid]]
    }
    return Stamps(stamps, frozenset(oid for oid, _, listed in members if listed))


def _rows(conn: SourceSession, statement: str, parts: Mapping[str, str], **values: object) -> list[tuple[Any, ...]]:
    """Run a statement that is composed around others."""
    inner = {name: sql.SQL(load(f"source/{part}")) for name, part in parts.items()}
    with translating(conn.place):
        return conn.execute(sql.SQL(load(f"source/{statement}")).format(**inner), values).fetchall()


def _missing(conn: SourceSession, leaves: Iterable[int]) -> dict[int, list[tuple[str, str]]]:
    found: dict[int, list[tuple[str, str]]] = {}
    for oid, column, text in conn.rows("catalog/missing", oids=list(leaves)):
        found.setdefault(oid, []).append((column, text))
    return {oid: sorted(rows) for oid, rows in found.items()}


def _types(known: Types, used: tuple[int, ...], made_of: dict[tuple[int, ...], str]) -> str:
    if used not in made_of:
        made_of[used] = _digest(known.closure(used))
    return made_of[used]


def _digest(*parts: object) -> str:
    return hashlib.blake2b(repr((SHAPE_LAYOUT, parts)).encode(), digest_size=16).hexdigest()

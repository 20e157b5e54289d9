"""Which change of a column's type needs no new copy: the server has kept every stored value, and renders it as before.

That the values were kept shows elsewhere: in a table whose file is the same. Here it is only asked whether the new type
renders them the same, and whether the lake's column can hold them. Pure.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.values.lake_types import holds, mapping
from penstock.values.pgtype import PgType

_TEXTS = frozenset({"text", "varchar", "citext"})
_TEXT = PgType(25, -1, "pg_catalog", "text", "b")


def followed(before: PgType, after: PgType) -> bool:
    """Return whether values of the one type stand in a column of the other as they are, given that none was rewritten.

    Source: PostgreSQL documentation, "ALTER TABLE": the new type is binary coercible from the old, or an unconstrained
    domain over it.
    """
    now, wanted = mapping(before).lake_type, mapping(after).lake_type
    return _plain(before) == _plain(after) and holds(wanted, now)


def _plain(type: PgType) -> PgType:
    """Return what decides how a value is rendered: domains as their base, any text as text, and no typmod."""
    while type.base is not None:
        type = type.base
    element = None if type.element is None else _plain(type.element)
    if type.kind == "b" and type.name in _TEXTS:
        return _TEXT
    if element == _TEXT:
        return replace(_TEXT, name="_text", element=_TEXT)
    return replace(type, typmod=-1, element=element, schema="", name="")

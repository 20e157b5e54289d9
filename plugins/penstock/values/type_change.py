"""Which change of a column's type needs no new copy: the server has kept every value, and the lake's column can hold it.

That the values were kept shows elsewhere: in a table whose file is the same, or in commands that left them to the server's own
cast. Here it is only asked whether the new type renders them the same, or whether that cast changes none. Pure.
"""

import math
from dataclasses import replace

import pyarrow as pa

from penstock.values.lake_types import holds, innermost, lake_type_of
from penstock.values.pgtype import PgType

INT2, INT4, INT8 = 21, 23, 20
_REAL, _DOUBLE = 700, 701
_WIDER = {INT2: {INT4, INT8}, INT4: {INT8}, 1005: {1007, 1016}, 1007: {1016}, _REAL: {_DOUBLE}}
"""Casts of the server's that change no value, by oid; of arrays too. Source: PostgreSQL's pg_type.dat."""
_VARCHAR, _NUMERIC = 1043, 1700
_SCALE = 0x7FF
_TEXTS = frozenset({"text", "varchar", "citext"})
_TEXT = PgType(25, -1, "pg_catalog", "text", "b")


def followed(before: PgType, after: PgType) -> bool:
    """Return whether values of the one type stand in a column of the other as they are, given that none was rewritten.

    Source: PostgreSQL documentation, "ALTER TABLE": the new type is binary coercible from the old, or an unconstrained
    domain over it.
    """
    now, wanted = lake_type_of(before), lake_type_of(after)
    return _plain(before) == _plain(after) and holds(wanted, now)


def widened(before: PgType, after: PgType) -> bool:
    """Return whether the server's own cast from the one type to the other changes no value, and the lake's column can become that."""
    now, wanted = lake_type_of(before), lake_type_of(after)
    return innermost(after).oid in _WIDER.get(innermost(before).oid, ()) and holds(wanted, now)


def cast_keeps(before: tuple[int, int], after: tuple[int, int]) -> bool:
    """Return whether the server's own cast keeps every value, between two types that are no domains, each as oid and typmod."""
    (old, old_typmod), (new, new_typmod) = before, after
    if before == after or new in _WIDER.get(old, ()):
        return True
    if old == _VARCHAR and new in (_VARCHAR, _TEXT.oid):
        return new_typmod == -1 or (old_typmod != -1 and new_typmod >= old_typmod)
    return old == new == _NUMERIC and (
        new_typmod == -1 or (old_typmod != -1 and (old_typmod ^ new_typmod) & _SCALE == 0 and new_typmod >= old_typmod)
    )


def sent_keeps(sent: int, now: PgType) -> bool:
    """Return whether a text of the type with this oid says the value that it has in a column that was widened since.

    Of a `real` it does so only to who reads it as one (`sent_as_real`).
    """
    return innermost(now).oid in _WIDER.get(sent, ())


def is_real(type: PgType) -> bool:
    """Return whether values of a type are single-precision numbers."""
    return innermost(type).oid == _REAL


def sent_as_real(sent: int, now: PgType) -> bool:
    """Return whether a text of the type with this oid has to be rounded to a `real` before it is the column's value.

    The server prints the shortest text that is read back as the same `real`: 0.1, which is 0.10000000149011612 when it is widened.
    """
    return sent == _REAL and innermost(now).oid == _DOUBLE


def widened_real(text: str) -> str:
    """Return the text of a `real` as that of the `double precision` which the server casts it to."""
    value = pa.scalar(text).cast(pa.float32()).as_py()
    return repr(value) if math.isfinite(value) else text


def _plain(type: PgType) -> PgType:
    """Return what decides how a value is rendered: domains as their base, any text as text, and no typmod."""
    type = innermost(type)
    element = None if type.element is None else _plain(type.element)
    if type.kind == "b" and type.name in _TEXTS:
        return _TEXT
    if element == _TEXT:
        return replace(_TEXT, name="_text", element=_TEXT)
    return replace(type, typmod=-1, element=element, schema="", name="")

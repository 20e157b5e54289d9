"""Types of columns that no catalog describes any more: what the stream said of them, their oid and typmod.

Built-in types have the same oid on every server. Whatever is not named here is kept as text.
"""

from __future__ import annotations

from penstock.values.pgtype import PgType

# Source: PostgreSQL's pg_type.dat.
_SCALARS = {
    16: "bool",
    17: "bytea",
    20: "int8",
    21: "int2",
    23: "int4",
    700: "float4",
    701: "float8",
    1082: "date",
    1114: "timestamp",
    1184: "timestamptz",
    1700: "numeric",
}
_ARRAYS = {
    1000: 16,
    1001: 17,
    1005: 21,
    1007: 23,
    1009: 25,
    1016: 20,
    1021: 700,
    1022: 701,
    1115: 1114,
    1182: 1082,
    1185: 1184,
    1231: 1700,
}


def builtin(oid: int, typmod: int) -> PgType:
    """Return the built-in type of this oid, or one that the lake holds as text."""
    if oid in _ARRAYS:
        element = builtin(_ARRAYS[oid], typmod)
        return PgType(oid, typmod, "pg_catalog", f"_{element.name}", "b", element=element)
    return PgType(oid, typmod, "pg_catalog", _SCALARS.get(oid, "text"), "b")

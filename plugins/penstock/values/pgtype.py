"""A PostgreSQL type: as the catalog describes it, by its oid where no catalog does any more, and what it is called.

It is enough to choose a lake type without asking the server again.
"""

from __future__ import annotations

from dataclasses import dataclass

TYPMOD_HEADER = 4
"""What the typmod of a length, or of a numeric, has on top of it."""


@dataclass(frozen=True, slots=True)
class PgType:
    """Describe one column's type.

    `kind` is `pg_type.typtype` (`b` base, `d` domain, `e` enum, `c` composite, `r` range, `m` multirange, `p` pseudo).
    `name` is the unqualified `typname`, `schema` its namespace; `typmod` is -1 where there is none.
    A domain has a `base` (whose typmod is the domain's own), an array has an `element`.
    Source: PostgreSQL documentation, "pg_type".
    """

    oid: int
    typmod: int
    schema: str
    name: str
    kind: str
    base: PgType | None = None
    element: PgType | None = None


def numeric_digits(typmod: int) -> tuple[int, int] | None:
    """Return precision and scale of a numeric's typmod, None for one without; the scale may be below zero (PostgreSQL 15+).

    Source: PostgreSQL documentation, "Arbitrary Precision Numbers"; the typmod packs 16 bits of precision and a
    signed scale of 11 bits behind a header of 4.
    """
    if typmod < TYPMOD_HEADER:
        return None
    packed = typmod - TYPMOD_HEADER
    return packed >> 16 & 0xFFFF, (packed & 0x7FF ^ 0x400) - 0x400


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
    """Return the built-in type of this oid, or one that the lake holds as text: of columns that no catalog describes any more.

    The stream said their oid and typmod, and built-in types have the same oid on every server.
    """
    if oid in _ARRAYS:
        element = builtin(_ARRAYS[oid], typmod)
        return PgType(oid, typmod, "pg_catalog", f"_{element.name}", "b", element=element)
    return PgType(oid, typmod, "pg_catalog", _SCALARS.get(oid, "text"), "b")


_BUILT_IN = "pg_catalog"
_SHORT = {
    "bool": "boolean",
    "bpchar": "char",
    "char": '"char"',
    "float4": "real",
    "float8": "double precision",
    "int2": "smallint",
    "int4": "integer",
    "int8": "bigint",
}
_LENGTHS = {"bpchar", "varchar"}
_BITS = {"bit", "varbit"}
_FRACTIONS = {"time", "timetz", "timestamp", "timestamptz"}


def type_name(type: PgType) -> str:
    """Name a type as `create table` takes it; the fields of an interval and what extensions note stay out.

    Source: PostgreSQL documentation, "Data Types", and `format_type`.
    """
    if type.element is not None and type.name.startswith("_"):
        return f"{_scalar(type.element, type.typmod)}[]"
    return _scalar(type, type.typmod)


def _scalar(type: PgType, typmod: int) -> str:
    if type.schema != _BUILT_IN:
        return type.name if type.schema == "public" else f"{type.schema}.{type.name}"
    return _SHORT.get(type.name, type.name) + _modifier(type.name, typmod)


def _modifier(name: str, typmod: int) -> str:
    if name == "numeric" and (digits := numeric_digits(typmod)):
        return f"({digits[0]},{digits[1]})"
    if typmod < 0:
        return ""
    if name in _LENGTHS:
        return f"({typmod - TYPMOD_HEADER})"
    if name in _BITS or name in _FRACTIONS:
        return f"({typmod})"
    return ""

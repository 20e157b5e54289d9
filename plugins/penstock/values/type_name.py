"""How a column's type is called: the name that PostgreSQL takes for it, with its length or precision."""

from __future__ import annotations

from penstock.values.pgtype import TYPMOD_HEADER, PgType, numeric_digits

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

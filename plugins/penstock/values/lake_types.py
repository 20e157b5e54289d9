"""Which lake type holds a PostgreSQL type: the table of types and four rules.

A type that the table names has a typed column; whatever is not named keeps its exact text. A domain is its base,
an array holds the type of its elements, and `numeric` is a decimal wherever 38 digits hold every value.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.values.pgtype import PgType, numeric_digits
from penstock.values.type_table import DECIMAL, STRING, TYPES, decimal_digits, element_type

SCALARS = {name: each.name for each in TYPES for name in each.postgres if each.name != DECIMAL}
EXTENSIONS = {name: each.name for each in TYPES for name in each.extensions}

_BUILT_IN = "pg_catalog"
_DECIMAL_DIGITS = 38
# Array literals are split at commas. These are the types known to separate their elements so: every type the
# server makes itself, and all built-in ones but one. An extension may choose any character.
_MADE_BY_THE_SERVER = frozenset("ecrm")
_OTHER_DELIMITER = frozenset({"box"})
_EXTENSIONS_WITH_COMMA = frozenset({"citext"})


@dataclass(frozen=True, slots=True)
class Mapping:
    """Hold a lake type as Spark SQL writes it; `exact` says that it holds every text, so nothing can misfit."""

    lake_type: str
    exact: bool


def mapping(type: PgType) -> Mapping:
    """Choose the lake type of a column's type."""
    lake_type = _container(innermost(type)) or _scalar(innermost(type))
    return Mapping(lake_type, exact=lake_type == STRING)


def innermost(type: PgType) -> PgType:
    """Return what a domain is made of, any other type as it is."""
    while type.base is not None:
        type = type.base
    return type


def _container(type: PgType) -> str | None:
    if type.kind == "b" and type.name in EXTENSIONS:
        return EXTENSIONS[type.name]
    element = _element(type)
    return f"array<{element}>" if element else None


def _element(type: PgType) -> str | None:
    """Return the lake type of an array's elements; None if it is no array, or one that we can't split."""
    if type.element is None or not _is_array(type):
        return None
    element = innermost(type.element)
    if element.kind in _MADE_BY_THE_SERVER or element.name in _EXTENSIONS_WITH_COMMA:
        return STRING
    if not _is_built_in(element) or _is_array(element) or element.name in _OTHER_DELIMITER:
        return None
    return _scalar(element, typmod=type.typmod if element.typmod == -1 else element.typmod)


def _is_array(type: PgType) -> bool:
    """Distinguish arrays from built-in types that have elements too: int2vector, point, name and their like."""
    return type.element is not None and (not _is_built_in(type) or type.name.startswith("_"))


def _is_built_in(type: PgType) -> bool:
    return type.schema == _BUILT_IN


def _scalar(type: PgType, typmod: int | None = None) -> str:
    if not _is_built_in(type):
        return STRING
    if type.name == "numeric":
        return _decimal(type.typmod if typmod is None else typmod)
    return SCALARS.get(type.name, STRING)


def _decimal(typmod: int) -> str:
    """Return the decimal that holds numeric(p,s), also for a scale below zero or above p."""
    found = numeric_digits(typmod)
    if found is None:
        return STRING
    precision, scale = found
    digits = max(precision - min(scale, 0), scale)
    return f"{DECIMAL}({digits},{max(scale, 0)})" if digits <= _DECIMAL_DIGITS else STRING


def holds(wanted: str, now: str) -> bool:
    """Return whether a field of a type can be changed in place to the wanted one, or is of it."""
    return now == wanted or wider(now, wanted)


def wider(now: str, wanted: str) -> bool:
    """Return whether Iceberg can change the type of a field in place. Source: Iceberg specification, "Schema Evolution"."""
    one, other = element_type(now), element_type(wanted)
    if one and other:
        return wider(one, other)
    old, new = decimal_digits(now), decimal_digits(wanted)
    if old and new:
        return new[0] > old[0] and new[1] == old[1]
    return (now, wanted) in (("int", "bigint"), ("float", "double"))

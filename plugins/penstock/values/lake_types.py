"""The one table of lake types, and which of them holds a PostgreSQL type.

Each type stands once, with what copies (Arrow), merges and changelogs (DuckDB) know of it. A type that the table names has a typed
column; whatever is not named keeps its exact text. A domain is its base, an array holds the type of its elements, and `numeric` is
a decimal wherever 38 digits hold every value. How a text of the server becomes a value is a rule of each engine, by the names of
this table: `parsed`, `engine.casts` and `defaults`. Tests hold every rule to the server's own texts.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

import pyarrow as pa

from penstock.values.pgtype import PgType, numeric_digits

STRING = "string"
DECIMAL = "decimal"
MISFITS_COLUMN = "_misfits"
"""A value that a typed column cannot hold is a misfit: the column is NULL, and the exact text stands here.

Because a cast gives NULL for nothing but NULL and misfits, one rule is enough for all types.
"""

_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_ARRAY = re.compile(r"array<(.+)>")


@dataclass(frozen=True, slots=True)
class LakeType:
    """Describe a lake type.

    `postgres` are the built-in types that it holds, `extensions` those of extensions. `parsed`: Arrow's own parser reads
    the server's texts exactly, so a copy lands values. `binary` is the type whose binary form a copy asks for instead of
    texts, because the driver reads it exactly. `always_fits`: it holds every value of these types, so a key of it
    never needs `_misfits`. `signed_zero`: 0 and -0 are equal in it, and have texts of their own. `quoted`: among an array's elements the server quotes the text, for it may have blanks,
    backslashes or anything else.
    """

    name: str
    postgres: tuple[str, ...]
    duckdb: str
    arrow: pa.DataType
    extensions: tuple[str, ...] = ()
    parsed: bool = True
    binary: str | None = None
    always_fits: bool = False
    quoted: bool = False
    whole_number: bool = False
    signed_zero: bool = False


TYPES = (
    LakeType("boolean", ("bool",), "boolean", pa.bool_(), binary="bool", always_fits=True),
    LakeType("int", ("int2", "int4"), "integer", pa.int32(), binary="int4", always_fits=True, whole_number=True),
    LakeType("bigint", ("int8",), "bigint", pa.int64(), binary="int8", always_fits=True, whole_number=True),
    LakeType("float", ("float4",), "float", pa.float32(), binary="float4", always_fits=True, signed_zero=True),
    LakeType("double", ("float8",), "double", pa.float64(), binary="float8", always_fits=True, signed_zero=True),
    LakeType(DECIMAL, ("numeric",), "decimal", pa.decimal128(38)),  # precision and scale are the column's
    LakeType("date", ("date",), "date", pa.date32(), binary="date"),
    LakeType("timestamp_ntz", ("timestamp",), "timestamp", pa.timestamp("us"), binary="timestamp", quoted=True),
    LakeType(
        "timestamp", ("timestamptz",), "timestamptz", pa.timestamp("us", tz="UTC"), binary="timestamptz", quoted=True
    ),
    LakeType("binary", ("bytea",), "blob", pa.binary(), parsed=False, always_fits=True, quoted=True),
    LakeType(
        "map<string,string>",
        (),
        "map(varchar, varchar)",
        pa.map_(pa.string(), pa.string()),
        extensions=("hstore",),
        parsed=False,
    ),
    LakeType(STRING, (), "varchar", pa.string(), parsed=False, always_fits=True, quoted=True),  # whatever is not above
)

BY_NAME: Mapping[str, LakeType] = {each.name: each for each in TYPES}


@cache
def describe(lake_type: str) -> LakeType:
    """Return what is known of a column's lake type, also of a decimal and of an array; raises KeyError for no lake type."""
    if digits := decimal_digits(lake_type):
        return replace(BY_NAME[DECIMAL], name=lake_type, duckdb=lake_type, arrow=pa.decimal128(*digits))
    if (element := element_type(lake_type)) is not None:
        inner = describe(element)
        listed = pa.list_(pa.field("element", inner.arrow))
        return LakeType(
            lake_type, (), f"{inner.duckdb}[]", listed, parsed=inner.whole_number, signed_zero=inner.signed_zero
        )
    return BY_NAME[lake_type]


def decimal_digits(lake_type: str) -> tuple[int, int] | None:
    """Return precision and scale of a decimal, None of any other type."""
    found = _DECIMAL.fullmatch(lake_type)
    return (int(found[1]), int(found[2])) if found else None


def element_type(lake_type: str) -> str | None:
    """Return the lake type of an array's elements, None of any other type."""
    found = _ARRAY.fullmatch(lake_type)
    return found[1] if found else None


SCALARS = {name: each.name for each in TYPES for name in each.postgres if each.name != DECIMAL}
EXTENSIONS = {name: each.name for each in TYPES for name in each.extensions}

_BUILT_IN = "pg_catalog"
_DECIMAL_DIGITS = 38
# Array literals are split at commas. These are the types known to separate their elements so: every type the
# server makes itself, and all built-in ones but one. An extension may choose any character.
_MADE_BY_THE_SERVER = frozenset("ecrm")
_OTHER_DELIMITER = frozenset({"box"})
_EXTENSIONS_WITH_COMMA = frozenset({"citext"})


def lake_type_of(type: PgType) -> str:
    """Choose the lake type of a column's type, as Spark SQL writes it."""
    return _container(innermost(type)) or _scalar(innermost(type))


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

"""The one table of lake types: each type once, with what copies (Arrow), merges and changelogs (DuckDB) know of it.

How a text of the server becomes a value is a rule of each engine, by the names of this table: `parsed`, `engine.casts` and
`defaults`. Tests hold every rule to the server's own texts, and notice a type that one of them has left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

import pyarrow as pa

STRING = "string"
DECIMAL = "decimal"

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

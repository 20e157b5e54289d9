"""Iceberg's transforms, by which somebody has partitioned or sorted a table, as DuckDB SQL.

Source: Iceberg specification, "Partition Transforms" and "Appendix B: 32-bit Hash Requirements".
"""

import re
from collections.abc import Callable

import mmh3
import pyarrow as pa

from penstock.engine.duck import Duck, duck_type
from penstock.values.lake_types import decimal_digits

_WIDTH = re.compile(r"(bucket|truncate)\[(\d+)\]")
_TIMES = ("date", "timestamp_ntz", "timestamp")
_HASHED_AS_LONG = {"int": "{}::bigint", "bigint": "{}", "date": "({} - date '1970-01-01')::bigint"}
_SIGN = 0x7FFFFFFF


def known(transform: str, lake_type: str) -> bool:
    """Return whether the engine can compute a transform of values of this type."""
    if transform in ("identity", "void"):
        return True
    if transform in ("year", "month", "day", "hour"):
        return lake_type in _TIMES
    found = _WIDTH.fullmatch(transform)
    if found is None:
        return False
    kinds = ("int", "bigint", "string", "binary") if found[1] == "truncate" else (*_HASHED_AS_LONG, *_HASHED, *_TIMES)
    return lake_type in kinds or decimal_digits(lake_type) is not None


def partitions(transform: str, lake_type: str) -> bool:
    """Return whether rows can be divided by a transform of values of this type.

    By floats they cannot: to Iceberg -0 and 0 are two partitions, and the JSON of partitions has no NaN and no infinity.
    """
    return known(transform, lake_type) and not (transform == "identity" and lake_type in ("float", "double"))


def apply(db: Duck, transform: str, value: str, lake_type: str) -> str:
    """Return the SQL of a transform of a value; NULL of NULL."""
    if transform == "void":
        return "null::integer"
    if transform == "identity":
        return value
    if found := _WIDTH.fullmatch(transform):
        width = int(found[2])
        return _bucket(db, value, lake_type, width) if found[1] == "bucket" else _truncated(value, lake_type, width)
    return _TIME_PARTS[transform](value)


def _truncated(value: str, lake_type: str, width: int) -> str:
    if lake_type == "string":
        return f"substring({value}, 1, {width})"
    if lake_type == "binary":
        return f"{value}[1:{width}]"
    if digits := decimal_digits(lake_type):
        _, scale = digits
        unscaled = _without_point(value)
        truncated = f"({unscaled} - ({unscaled} % {width} + {width}) % {width})::decimal(38,0)"
        return f"({truncated} * 0.{'0' * (scale - 1)}1::decimal({scale},{scale}))" if scale else truncated
    wide = f"({value}::hugeint - ({value} % {width} + {width}) % {width})"
    span = 1 << (32 if lake_type == "int" else 64)  # below the least number Java goes on from the greatest
    return f"(case when {wide} < {-span // 2} then {wide} + {span} else {wide} end)::{duck_type(lake_type)}"


def _bucket(db: Duck, value: str, lake_type: str, width: int) -> str:
    """Hash values as Iceberg does; a row at a time, in Python: only who buckets a table pays for it."""
    if lake_type in _HASHED_AS_LONG:
        name, argument = "hash_of_long", _HASHED_AS_LONG[lake_type].format(value)
    elif lake_type in ("timestamp", "timestamp_ntz"):
        name, argument = "hash_of_long", f"epoch_us({value})"
    elif decimal_digits(lake_type):
        name, argument = "hash_of_unscaled", f"{_without_point(value)}::varchar"
    else:
        name, argument = _HASHED[lake_type], value
    _register(db, name)
    return f"({name}({argument}) % {width})"


def _without_point(value: str) -> str:
    """Return a decimal without its point; by way of its digits, for DuckDB divides decimals as doubles."""
    return f"replace({value}::varchar, '.', '')::hugeint"


def _floor_divided(value: str, width: int) -> str:
    return f"(({value} - ({value} % {width} + {width}) % {width}) // {width})::integer"


def _register(db: Duck, name: str) -> None:
    taken, encode = _HASHES[name]
    if db.rows(f"select 1 from duckdb_functions() where function_name = '{name}' limit 1"):
        return

    def hashed(values: pa.ChunkedArray) -> pa.Array:
        return pa.array(
            [None if each is None else mmh3.hash(encode(each)) & _SIGN for each in values.to_pylist()], pa.int32()
        )

    db.connection.create_function(name, hashed, [taken], "INTEGER", type="arrow")


def _long(value: int) -> bytes:
    return value.to_bytes(8, "little", signed=True)


def _unscaled(text: str) -> bytes:
    value = int(text)
    return value.to_bytes((value if value >= 0 else ~value).bit_length() // 8 + 1, "big", signed=True)


_HASHED = {"string": "hash_of_text", "binary": "hash_of_bytes"}
_HASHES: dict[str, tuple[str, Callable[..., bytes]]] = {
    "hash_of_long": ("BIGINT", _long),
    "hash_of_unscaled": ("VARCHAR", _unscaled),
    "hash_of_text": ("VARCHAR", str.encode),
    "hash_of_bytes": ("BLOB", bytes),
}
_TIME_PARTS: dict[str, Callable[[str], str]] = {
    "year": lambda value: f"(date_part('year', {value}) - 1970)::integer",
    "month": lambda value: f"((date_part('year', {value}) - 1970) * 12 + date_part('month', {value}) - 1)::integer",
    "day": lambda value: f"({value}::date - date '1970-01-01')::integer",
    "hour": lambda value: _floor_divided(f"epoch_us({value})", 3_600_000_000),
}

"""Partition transforms: PyIceberg's own are the oracle, over random values and those at the edges."""

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, localcontext
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyiceberg import types as iceberg
from pyiceberg.transforms import parse_transform
from pyiceberg.utils.datetime import date_to_days, datetime_to_micros, timestamptz_to_micros

from penstock.engine import duck, transforms
from penstock.engine.duck import Duck
from penstock.engine.files import Files
from penstock.engine.order import Resources

_RANDOM = random.Random(5)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMES = [
    *(_EPOCH + timedelta(microseconds=_RANDOM.randrange(-5 * 10**16, 10**17)) for _ in range(200)),
    *(
        _EPOCH + timedelta(hours=hours, microseconds=near)
        for hours in (-800_000, -1, 0, 1, 700_000)
        for near in (-1, 0, 1)
    ),
]
_NUMBERS = [*(_RANDOM.randrange(-(2**31), 2**31) for _ in range(200)), 0, 1, -1, 9, 10, -10, 2**31 - 1, -(2**31)]
_TEXTS = [
    "",
    "a",
    "iceberg",
    "é" * 4,
    "e\u0301" * 3,
    "\U0001d4b3\U0001d4b4",
    "line\nline",
    *(str(number) for number in _NUMBERS[:50]),
]
_DECIMALS = [Decimal(number).scaleb(-2) for number in _NUMBERS] + [Decimal("-0.01"), Decimal("1.27"), Decimal("1.28")]
_LONG_DECIMALS = [Decimal(f"{number * 987_654_321}.{abs(number):010}") for number in _NUMBERS]
_LONG_DECIMALS += [Decimal(f"-{'9' * 26}.0000000001"), Decimal("-0.0000000001"), Decimal("0.0000000009")]
_TYPES: dict[str, tuple[Any, pa.DataType, list[Any]]] = {
    "int": (iceberg.IntegerType(), pa.int32(), _NUMBERS),
    "bigint": (iceberg.LongType(), pa.int64(), [*_NUMBERS, 2**63 - 1, -(2**62)]),
    "decimal(12,2)": (iceberg.DecimalType(12, 2), pa.decimal128(12, 2), _DECIMALS),
    "decimal(36,10)": (iceberg.DecimalType(36, 10), pa.decimal128(36, 10), _LONG_DECIMALS),
    "decimal(38,0)": (iceberg.DecimalType(38, 0), pa.decimal128(38), [Decimal(10**37 - 1), Decimal(-(10**37) - 9)]),
    "decimal(5,5)": (iceberg.DecimalType(5, 5), pa.decimal128(5, 5), [Decimal("-0.99999"), Decimal("0.00001")]),
    "string": (iceberg.StringType(), pa.string(), _TEXTS),
    "binary": (iceberg.BinaryType(), pa.binary(), [text.encode() for text in _TEXTS]),
    "date": (iceberg.DateType(), pa.date32(), [time.date() for time in _TIMES]),
    "timestamp": (iceberg.TimestamptzType(), pa.timestamp("us", tz="UTC"), _TIMES),
    "timestamp_ntz": (iceberg.TimestampType(), pa.timestamp("us"), [time.replace(tzinfo=None) for time in _TIMES]),
}
_DECIMAL_TYPES = [each for each in _TYPES if each.startswith("decimal")]
_CASES = [
    *((lake_type, name) for lake_type in _TYPES for name in ("identity", "bucket[7]", "bucket[100]")),
    *((lake_type, "truncate[10]") for lake_type in ("int", "bigint", *_DECIMAL_TYPES, "string", "binary")),
    *((lake_type, name) for lake_type in ("timestamp", "timestamp_ntz") for name in ("year", "month", "day", "hour")),
    *(("date", name) for name in ("year", "month", "day")),
]


@pytest.fixture
def db() -> Iterator[Duck]:
    with duck.connect(Resources(), Files()) as opened:
        yield opened


@pytest.mark.parametrize(("lake_type", "transform"), _CASES)
def test_a_transform_is_icebergs(db: Duck, lake_type: str, transform: str) -> None:
    type_, arrow, values = _TYPES[lake_type]
    ordered = pa.table({"n": pa.array(range(len(values) + 1)), "v": pa.array([*values, None], arrow)})
    db.connection.register("given", ordered)

    assert transforms.known(transform, lake_type)
    query = f"select {transforms.apply(db, transform, 'v', lake_type)} from given order by n"
    found = [each for (each,) in db.rows(query)]

    theirs = parse_transform(transform).transform(type_)
    with localcontext(prec=60):  # PyIceberg reckons with decimals, by default of 28 digits
        expected = [theirs(each if transform == "identity" else _internal(each)) for each in values]
    if lake_type == "int":  # Java, whose readers look for it, has no other number for one below the least
        expected = [each + 2**32 if isinstance(each, int) and each < -(2**31) else each for each in expected]
    assert found == [*expected, None]


def _internal(value: Any) -> Any:
    if isinstance(value, datetime):
        return datetime_to_micros(value) if value.tzinfo is None else timestamptz_to_micros(value.isoformat())
    return date_to_days(value) if isinstance(value, date) else value


@pytest.mark.parametrize(
    ("lake_type", "transform"),
    [
        ("string", "day"),
        ("double", "bucket[4]"),
        ("boolean", "truncate[3]"),
        ("int", "zorder"),
        ("array<int>", "bucket[2]"),
    ],
)
def test_what_the_engine_cannot_compute_is_known_as_such(lake_type: str, transform: str) -> None:
    assert not transforms.known(transform, lake_type)


def test_rows_are_not_divided_by_floats_which_are_equal_and_two_partitions() -> None:
    (equal,) = duckdb.sql("select '-0'::double = '0'::double").fetchall()[0]
    assert equal
    assert [transforms.partitions("identity", each) for each in ("float", "double", "decimal(4,2)")] == [
        False,
        False,
        True,
    ]
    assert transforms.known("identity", "double")  # to sort by

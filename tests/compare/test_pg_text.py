"""The texts of lake values against the texts that a server renders for the same values."""

import random
import struct
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.compare.pg_text import row_texts, texts
from stack.servers.postgres import Server
from tests.values.conftest import Source, pinned

BY_A_SERVER = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])

marks = st.sampled_from(
    ['"', "\\", ",", "{", "}", "NULL", "nUll", " ", "\t", "\v", "\f", "\r", "\n", "", "=>", "\u00a0"]
)
anything = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6)
words = st.lists(marks | anything, max_size=3).map("".join)


@pytest.fixture(scope="module")
def server(postgres16: Server) -> Iterator[Source]:
    with postgres16.connect() as connection:
        yield pinned(connection)


def rendered(server: Source, type: str, values: list[object]) -> list[str | None]:
    """Send values in binary form and return the server's texts."""
    query = f"select x::{type} from unnest(%b::{type}[]) with ordinality as t(x, n) order by n"
    return [row[0] for row in server.texts(query, values)]


def doubles() -> list[float]:
    """Powers of two and ten with their neighbours, and bits at random: wherever a shortest text is hard to find."""
    chosen = random.Random(7)
    powers = [2.0**n for n in range(-1074, 1024)] + [float(f"{m}e{n}") for n in range(-323, 308) for m in (1, 5, 9)]
    near = [other for value in powers for other in (value, np.nextafter(value, 0), -np.nextafter(value, np.inf))]
    bits = [struct.unpack("d", chosen.randbytes(8))[0] for _ in range(3000)]
    large = [float(chosen.getrandbits(70)) for _ in range(3000)]
    plain = [chosen.uniform(-1e6, 1e6) for _ in range(1000)]
    return [float(value) for value in [0.0, -0.0, *near, *bits, *large, *plain] if np.isfinite(value)]


def test_doubles_are_written_as_the_server_writes_them(server: Source) -> None:
    values = [*doubles(), float("nan"), float("inf"), float("-inf")]
    assert texts(pa.array(values, pa.float64())).to_pylist() == rendered(server, "float8", list(values))


def test_singles_are_written_as_the_server_writes_them(server: Source) -> None:
    with np.errstate(over="ignore"):
        singles = np.array([*doubles(), 3.4028235e38, 1e-45, 16777216, np.nan], np.float32)
    values = [float(value) for value in singles]
    assert texts(pa.array(singles, pa.float32())).to_pylist() == rendered(server, "float4", list(values))


@BY_A_SERVER
@given(values=st.lists(st.none() | words, max_size=8))
def test_arrays_are_quoted_as_the_server_quotes_them(server: Source, values: list[str | None]) -> None:
    ((text,),) = server.texts("select %s::text[]", values)
    assert texts(pa.array([values], pa.list_(pa.string()))).to_pylist() == [text]


@BY_A_SERVER
@given(values=st.lists(st.none() | st.binary(max_size=9), max_size=9))
def test_bytes_are_written_in_hex(server: Source, values: list[bytes | None]) -> None:
    array = pa.array([b"before", *values], pa.binary())
    assert texts(array.slice(1)).to_pylist() == rendered(server, "bytea", list(values))


CASES: list[tuple[str, pa.DataType, list[object]]] = [
    ("bool", pa.bool_(), [True, False, None]),
    ("int4", pa.int32(), [0, -(2**31), 2**31 - 1, None]),
    ("int8", pa.int64(), [-(2**63), 2**63 - 1]),
    ("numeric(10,2)", pa.decimal128(10, 2), [Decimal("1.50"), Decimal("-0.01"), Decimal("0.00"), None]),
    ("numeric(38,20)", pa.decimal128(38, 20), [Decimal("1e-20"), Decimal(0), Decimal("-12.5"), None]),
    ("numeric(5,0)", pa.decimal128(5, 0), [Decimal(0), Decimal(-99999)]),
    ("date", pa.date32(), [date(1, 1, 1), date(1582, 10, 10), date(9999, 12, 31), None]),
    (
        "timestamp",
        pa.timestamp("us"),
        [
            datetime(1, 1, 1),
            datetime(1969, 12, 31, 23, 59, 59, 999_999),
            datetime(2024, 2, 29, 10, 0, 0, 120_000),
            None,
        ],
    ),
    (
        "timestamptz",
        pa.timestamp("us", "UTC"),
        [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), None],
    ),
    ("text", pa.large_string(), ["", "NULL", "ü\n", None]),
]


@pytest.mark.parametrize(("type", "kept_as", "values"), CASES, ids=[case[0] for case in CASES])
def test_a_type_is_written_as_the_server_writes_it(
    server: Source, type: str, kept_as: pa.DataType, values: list[object]
) -> None:
    expected = rendered(server, type, values)
    assert texts(pa.array(values, kept_as)).to_pylist() == expected
    assert texts(pa.array([None, *values], kept_as).slice(1)).to_pylist() == expected
    lists = pa.array([None, values, [], values[:1]], pa.list_(kept_as))
    wanted = [server.texts(f"select %s::{type}[]", some)[0][0] for some in (values, [], values[:1])]
    assert texts(lists).to_pylist() == [None, *wanted]
    assert texts(lists.slice(1, 2)).to_pylist() == wanted[:2]
    assert texts(lists.cast(pa.large_list(kept_as))).to_pylist() == [None, *wanted]


def test_an_hstore_is_written_in_its_own_order_of_keys(postgres15: Server) -> None:
    pairs = {"b": "1", "a": None, "": 'q"\\', "aa": "NULL", "ü": ""}
    with postgres15.temporary_database("hstore_texts") as database, database.connect() as connection:
        connection.execute("create extension hstore")
        ((text,),) = pinned(connection).texts("select hstore(%s::text[], %s::text[])", [*pairs], [*pairs.values()])
    kept = pa.array([list(pairs.items()), [], None], pa.map_(pa.string(), pa.string()))
    assert texts(kept).to_pylist() == [text, "", None]


def test_a_misfits_own_text_stands_where_the_value_is_null() -> None:
    misfits = pa.array(
        [[("d", "infinity")], None, [("other", "x")], [("d", "late")]], pa.map_(pa.string(), pa.string())
    )
    days = pa.array([None, date(2024, 1, 1), None, date(2024, 1, 2)])
    (column,) = row_texts(pa.record_batch([days, misfits], ["d", "_misfits"]), ["d"])
    assert column.to_pylist() == ["infinity", "2024-01-01", None, "2024-01-02\0late"]


def test_a_type_that_holds_no_value_of_the_servers_is_refused() -> None:
    with pytest.raises(TypeError, match="got time64"):
        texts(pa.array([None], pa.time64("us")))

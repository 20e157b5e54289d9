"""The type table against the server's own catalog."""

import pyarrow as pa
import pytest

from penstock.codec import plain, record_of
from penstock.values.lake_types import EXTENSIONS, SCALARS, holds, lake_type_of
from penstock.values.parsed import value_of
from penstock.values.pgtype import PgType
from tests.values.conftest import Source

BUILT_IN = """
select oid::int from pg_type
where typnamespace = 'pg_catalog'::regnamespace and typtype not in ('p', 'c') and typcategory <> 'A'
"""
ARRAYS = """
select a.oid::int, e.oid::int, e.typname from pg_type a join pg_type e on e.typarray = a.oid
where a.typnamespace = 'pg_catalog'::regnamespace and e.typtype not in ('p', 'c') and e.typname !~ '^pg_|^_'
"""


def test_every_built_in_type_is_named_or_keeps_its_exact_text(source: Source) -> None:
    types = [source.describe(oid) for (oid,) in source.execute(BUILT_IN).fetchall()]
    assert len(types) > 60
    assert {type.name for type in types} > set(SCALARS)
    for type in types:
        assert lake_type_of(type) == SCALARS.get(type.name, "string")


def test_every_built_in_array_holds_its_elements_type_but_for_boxes(source: Source) -> None:
    rows = source.execute(ARRAYS).fetchall()
    assert len(rows) > 60
    for array, element, name in rows:
        inner = lake_type_of(source.describe(element))
        assert lake_type_of(source.describe(array)) == ("string" if name == "box" else f"array<{inner}>"), name


@pytest.mark.parametrize("name", ["int4", "numeric", "hstore_of_mine", "_int4"])
def test_a_type_of_the_users_keeps_its_text_whatever_its_name(name: str) -> None:
    assert lake_type_of(PgType(70000, -1, "public", name, "b")) == "string"


def test_an_array_of_an_extension_type_stays_whole_because_its_delimiter_is_unknown() -> None:
    element = PgType(70000, -1, "public", "geometry", "b")
    assert lake_type_of(PgType(70001, -1, "public", "_geometry", "b", element=element)) == "string"


def test_hstore_and_citext_are_known_by_name_in_whatever_schema() -> None:
    hstore = PgType(70000, -1, "contrib", "hstore", "b")
    assert lake_type_of(hstore) == EXTENSIONS["hstore"]
    citext = PgType(70001, -1, "contrib", "citext", "b")
    assert lake_type_of(citext) == "string"
    assert lake_type_of(PgType(70002, -1, "contrib", "_citext", "b", element=citext)) == "array<string>"
    assert lake_type_of(PgType(70003, -1, "contrib", "_hstore", "b", element=hstore)) == "string"


def test_a_type_survives_the_way_through_json(source: Source) -> None:
    source.execute("create domain price as numeric(8,2)")
    array = source.type("price[]")
    assert record_of(PgType, plain(array)) == array
    assert lake_type_of(record_of(PgType, plain(array))) == "array<decimal(8,2)>"


@pytest.mark.parametrize(
    ("now", "wanted", "held"),
    [
        ("int", "int", True),
        ("int", "bigint", True),
        ("bigint", "int", False),
        ("float", "double", True),
        ("array<int>", "array<bigint>", True),
        ("array<int>", "bigint", False),
        ("int", "array<bigint>", False),
        ("decimal(8,2)", "decimal(10,2)", True),
        ("decimal(10,2)", "decimal(8,2)", False),
        ("decimal(8,2)", "decimal(10,3)", False),
        ("decimal(8,2)", "bigint", False),
    ],
)
def test_a_field_becomes_what_iceberg_can_make_of_it(now: str, wanted: str, held: bool) -> None:
    assert holds(wanted, now) is held


DAY = 86_400_000_000


@pytest.mark.parametrize(
    ("lake_type", "numbers", "fits"),
    [
        ("date", pa.array([-719_162, None, 2_932_896], pa.date32()), True),
        ("date", pa.array([0, -719_163], pa.date32()), False),
        ("date", pa.array([0, 2_932_897], pa.date32()), False),
        ("date", pa.array([None], pa.date32()), True),
        ("timestamp", pa.array([-719_162 * DAY, 2_932_897 * DAY - 1], pa.timestamp("us", "UTC")), True),
        ("timestamp", pa.array([-719_162 * DAY - 1], pa.timestamp("us", "UTC")), False),
        ("timestamp_ntz", pa.array([2_932_897 * DAY], pa.timestamp("us")), False),
        ("bigint", pa.array([1 << 62]), True),
    ],
)
def test_values_as_the_server_sent_them_are_of_the_years_that_the_lake_has(
    lake_type: str, numbers: pa.Array, fits: bool
) -> None:
    if fits:
        assert value_of(numbers, lake_type) is numbers
    else:
        with pytest.raises(pa.ArrowInvalid, match="of the years 1 to 9999"):
            value_of(numbers, lake_type)

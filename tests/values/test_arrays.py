"""Arrays and hstores made at random, rendered by the server and taken apart by the engine."""

from collections.abc import Iterator
from datetime import datetime

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from psycopg.types import TypeInfo
from psycopg.types.hstore import register_hstore

from penstock.values.lake_types import lake_type_of
from stack.servers.postgres import Server
from tests.values.conftest import Source, pinned
from tests.values.engines import DuckDb

# Each example is one query for a bundle of arrays, so a few examples are many arrays.
BUNDLES = settings(
    max_examples=25,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)

troublesome = st.sampled_from(
    ['"', "\\", ",", "{", "}", "NULL", "null", " ", "\t", "\n", "=>", "", "'", "$1", "[", "\v", "\\1"]
)
anything = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
texts = st.lists(anything | troublesome, max_size=4).map("".join)
moments = st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9999, 12, 31))


def bundles(element: st.SearchStrategy[object]) -> st.SearchStrategy[list[list[object]]]:
    return st.lists(st.lists(st.none() | element, max_size=6), min_size=1, max_size=25)


def returned(source: Source, duckdb: DuckDb, type: str, values: list[list[object]]) -> list[object]:
    """Send values to the server, cast the texts that it renders, and return what comes of them."""
    rendered = [source.texts(f"select cast(%s as {type})", value)[0][0] for value in values]
    return duckdb.cast(rendered, lake_type_of(source.type(type)))


@BUNDLES
@given(values=bundles(texts))
def test_any_array_of_texts_comes_back(source16: Source, duckdb: DuckDb, values: list[list[object]]) -> None:
    assert returned(source16, duckdb, "text[]", values) == values


@BUNDLES
@given(values=bundles(st.integers(-(2**63), 2**63 - 1)))
def test_any_array_of_numbers_comes_back(source16: Source, duckdb: DuckDb, values: list[list[object]]) -> None:
    assert returned(source16, duckdb, "int8[]", values) == values


@BUNDLES
@given(values=bundles(st.binary(max_size=8)))
def test_any_array_of_bytes_comes_back(source16: Source, duckdb: DuckDb, values: list[list[object]]) -> None:
    assert returned(source16, duckdb, "bytea[]", values) == values


@BUNDLES
@given(values=bundles(moments))
def test_any_array_of_moments_comes_back(source16: Source, duckdb: DuckDb, values: list[list[object]]) -> None:
    assert returned(source16, duckdb, "timestamp[]", values) == values


@BUNDLES
@given(values=bundles(st.lists(texts, min_size=2, max_size=2)))
def test_an_array_of_more_dimensions_is_a_misfit(source16: Source, duckdb: DuckDb, values: list[list[object]]) -> None:
    deep = [[pair for pair in value if pair is not None] or [["a", "b"]] for value in values]
    assert returned(source16, duckdb, "text[]", deep) == [None] * len(deep)  # type: ignore[arg-type]


@pytest.fixture
def with_hstore(postgres15: Server) -> Iterator[Source]:
    """A source that has the extension; the embedded server comes without it."""
    with postgres15.temporary_database("hstores") as database, database.connect() as connection:
        connection.execute("create extension hstore")
        info = TypeInfo.fetch(connection, "hstore")
        assert info is not None
        register_hstore(info, connection)
        yield pinned(connection)


@BUNDLES
@given(values=st.lists(st.dictionaries(texts, st.none() | texts, max_size=5), min_size=1, max_size=25))
def test_any_hstore_comes_back(with_hstore: Source, duckdb: DuckDb, values: list[dict[str, str | None]]) -> None:
    returned_pairs = returned(with_hstore, duckdb, "hstore", values)  # type: ignore[arg-type]
    assert [dict(pairs) for pairs in returned_pairs] == values  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "text", ["a", '"a"', '"a"=>', '"a"=>b', '"a"=>"b",', '"a"=>"b", ', ' "a"=>"b"', '"a"=>"1", "a"=>"2"']
)
def test_what_no_hstore_renders_is_a_misfit(duckdb: DuckDb, text: str) -> None:
    assert duckdb.cast([text], "map<string,string>") == [None]


@pytest.mark.slow
def test_a_text_of_megabytes_is_taken_apart(source16: Source, duckdb: DuckDb) -> None:
    long = ['\\"' * 300_000, "x" * 1_000_000, None]
    many = ["a b"] * 100_000
    assert returned(source16, duckdb, "text[]", [long, many]) == [long, many]

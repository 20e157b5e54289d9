"""Text from the server, cast by DuckDB: the values are the driver's own, and they lead back to the same text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import pytest
from psycopg import sql

from penstock.engine import casts, duck
from penstock.engine.duck import Duck
from penstock.engine.files import Files
from penstock.engine.order import Resources
from penstock.values.lake_types import mapping
from penstock.values.pgtype import PgType
from tests.values.cases import SETUP
from tests.values.conftest import Source
from tests.values.test_casts import as_stored, cases, misfitting, rendered, same


@pytest.fixture
def shop(source: Source) -> Source:
    """A source with the types of the case table."""
    source.execute(SETUP)
    return source


@pytest.fixture
def db() -> Iterator[Duck]:
    with duck.connect(Resources(), Files()) as opened:
        yield opened


def cast_column(db: Duck, texts: Sequence[str | None], type_: PgType) -> list[object]:
    """Cast texts; values come through Arrow, as the engine writes them."""
    return values_of(db, texts, casts.cast_to("t", mapping(type_).lake_type))


def values_of(db: Duck, texts: Sequence[str | None], expression: str) -> list[object]:
    db.execute("create or replace temp table texts (n integer, t varchar)")
    db.connection.executemany("insert into texts values (?, ?)", list(enumerate(texts)))
    found = db.connection.sql(f"select {expression} as v from texts order by n").to_arrow_table()
    return list(found["v"].to_pylist())


def test_values_that_fit_are_the_drivers_own_and_lead_back_to_their_text(shop: Source, db: Duck) -> None:
    for case in cases(shop):
        texts = [*rendered(shop, case.type, case.fits), None]
        values = cast_column(db, texts, shop.type(case.type))
        assert values.pop() is None
        assert None not in values, case
        for literal, text, value in zip(case.fits, texts, values, strict=False):
            ((back,),) = shop.texts(f"select cast(%s as {case.type})", value)
            assert back == text, (case, literal)
            if case.lake != "string" and case.lake != "array<string>":
                own = shop.decoded(f"select cast(%s as {case.known_as or case.type})", literal)
                assert same(value, as_stored(own, case)), (case, literal)


def test_values_that_do_not_fit_are_null_and_kept_as_misfits(shop: Source, db: Duck) -> None:
    for type_, texts in misfitting(shop):
        lake_type = mapping(type_).lake_type
        cast = casts.cast_to("t", lake_type)
        kept = casts.misfits([("it's", "t", f"({cast})", lake_type)])

        assert cast_column(db, texts, type_) == [None] * len(texts), (type_, texts)
        assert values_of(db, texts, kept) == [[("it's", text)] for text in texts], (type_, texts)


def test_values_that_fit_and_nulls_are_not_misfits(shop: Source, db: Duck) -> None:
    for case in cases(shop):
        texts = [*rendered(shop, case.type, case.fits), None]
        cast = casts.cast_to("t", case.lake)
        assert values_of(db, texts, casts.misfits([("x", "t", f"({cast})", case.lake)])) == [None] * len(texts), case


def test_a_float_is_the_nearest_one_bit_by_bit(source16: Source, db: Duck) -> None:
    source16.execute("select setseed(0.5)")
    query = """
        select x::float4, x from (
            select (random() - 0.5) * power(10::float8, (random() * 60 - 30)::int) as x from generate_series(1, 2000)
        ) as numbers
    """
    columns = [list(column) for column in zip(*source16.texts(query), strict=True)]
    types = [source16.type("float4"), source16.type("float8")]
    singles, doubles = (cast_column(db, texts, type_) for texts, type_ in zip(columns, types, strict=True))
    ours = sql.SQL("select array(select unnest({}::float8[])::float4)::text").format(singles)
    ((back,),) = source16.texts(ours)
    assert back == "{" + ",".join(str(text) for text in columns[0]) + "}"
    assert doubles == [float(str(text)) for text in columns[1]]
    assert not any(math.isinf(value) for value in doubles if isinstance(value, float))


_DECADES = "'4000-01-01'::timestamptz - random() * interval '4000 years'"


@pytest.mark.parametrize(
    ("type_", "expression"),
    [
        ("timestamptz", _DECADES),
        ("timestamp", f"({_DECADES})::timestamp"),
        ("date", f"({_DECADES})::date"),
        ("numeric(38,20)", "((random() - 0.5) * power(10::float8, (random() * 34 - 17)::int))::numeric(38,20)"),
        ("numeric(5,5)", "(random() - 0.5)::numeric(5,5)"),
        ("int8", "((random() - 0.5) * 1.8e19)::numeric::int8"),
        ("bytea", "sha256(random()::text::bytea)"),
    ],
)
def test_random_values_lead_back_to_their_text(source16: Source, db: Duck, type_: str, expression: str) -> None:
    source16.execute("select setseed(0.25)")
    texts = [text for (text,) in source16.texts(f"select {expression} from generate_series(1, 2000)")]

    values = cast_column(db, texts, source16.type(type_))

    assert None not in values
    back = source16.texts(sql.SQL("select unnest({}::" + type_ + "[])").format(values))
    assert [text for (text,) in back] == texts


@pytest.mark.parametrize(
    "text",
    [*(" 12", "12 ", "+12", "012", "-0", "12.0", "12.7", "1e3", "0x10", "1_000", "12\n", "", "null", "९")],
)
def test_a_text_that_the_server_does_not_write_is_no_whole_number(db: Duck, text: str) -> None:
    for lake_type in ("int", "bigint", "decimal(10,0)"):
        assert values_of(db, [text], casts.cast_to("t", lake_type)) == [None], lake_type

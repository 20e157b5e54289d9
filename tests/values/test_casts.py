"""Each engine's rule for each type, held to the server's own texts: one list of cases for all of them.

A new version of DuckDB, of Arrow or of PostgreSQL that casts or renders anything otherwise ends here.
"""

import math

import pytest
from psycopg import sql

from penstock.engine import casts
from penstock.values.lake_types import lake_type_of
from tests.values.conftest import Source
from tests.values.engines import Arrow, DuckDb, Engine
from tests.values.rendering import as_stored, cases, foreign, rendered, same


@pytest.fixture(params=["DuckDB", "Arrow"])
def engine(duckdb: DuckDb, request: pytest.FixtureRequest) -> Engine:
    return duckdb if request.param == "DuckDB" else Arrow()


def test_every_type_of_the_case_table_has_the_lake_type_that_the_table_says(shop: Source) -> None:
    for case in cases(shop):
        assert lake_type_of(shop.type(case.type)) == case.lake, case


def test_values_that_fit_are_the_drivers_own_and_lead_back_to_their_text(shop: Source, engine: Engine) -> None:
    for case in cases(shop):
        if not engine.knows(case.lake):
            continue
        texts = rendered(shop, case.type, case.fits)
        first, *values, last = engine.cast([None, *texts, None], case.lake)
        assert first is last is None
        assert None not in values, case
        for literal, text, value in zip(case.fits, texts, values, strict=True):
            ((back,),) = shop.texts(f"select cast(%s as {case.type})", value)
            assert back == text, (case, literal)
            if case.lake != "string" and case.lake != "array<string>":
                own = shop.decoded(f"select cast(%s as {case.known_as or case.type})", literal)
                assert same(value, as_stored(own, case)), (case, literal)


def test_values_that_do_not_fit_are_null(shop: Source, engine: Engine) -> None:
    refused = set()
    for case in cases(shop):
        if case.misfits and engine.knows(case.lake):
            texts = rendered(shop, case.type, case.misfits)
            assert engine.cast(texts, case.lake) == [None] * len(texts), (case, texts)
            refused.add(case.lake)
    assert refused >= {"date", "timestamp", "timestamp_ntz", "array<int>", "decimal(10,2)"}


def test_texts_that_no_column_of_the_type_renders_are_null(shop: Source, duckdb: DuckDb) -> None:
    """A copy sees only what its snapshot's types render, so this is no matter of Arrow's."""
    for type_, texts in foreign(shop):
        assert duckdb.cast(texts, lake_type_of(type_)) == [None] * len(texts), (type_, texts)


def test_a_misfit_is_kept_under_its_columns_name_and_what_fits_or_is_null_is_not(shop: Source, duckdb: DuckDb) -> None:
    for case in cases(shop):
        kept = casts.misfits([("it's", "t", f"({casts.cast_to('t', case.lake)})", case.lake)])
        fits, misfits = rendered(shop, case.type, case.fits), []
        if case.misfits:
            misfits = rendered(shop, case.type, case.misfits)

        assert duckdb.values([*fits, None], kept) == [None] * (len(fits) + 1), case
        assert duckdb.values(misfits, kept) == [[("it's", text)] for text in misfits], case


@pytest.mark.parametrize(
    "text", [" 12", "12 ", "+12", "012", "-0", "12.0", "12.7", "1e3", "0x10", "1_000", "12\n", "९"]
)
def test_a_text_that_the_server_does_not_write_is_no_whole_number(duckdb: DuckDb, text: str) -> None:
    for lake_type in ("int", "bigint", "decimal(10,0)"):
        assert duckdb.cast([text], lake_type) == [None], lake_type


def test_a_float_is_the_nearest_one_bit_by_bit(source16: Source, engine: Engine) -> None:
    source16.execute("select setseed(0.5)")
    query = """
        select x::float4, x from (
            select (random() - 0.5) * power(10::float8, (random() * 600 - 300)::int) as y,
                   (random() - 0.5) * power(10::float8, (random() * 60 - 30)::int) as x from generate_series(1, 2000)
        ) as numbers
    """
    columns = [list(column) for column in zip(*source16.texts(query), strict=True)]
    singles, doubles = (engine.cast(texts, name) for texts, name in zip(columns, ("float", "double"), strict=True))
    ours = sql.SQL("select array(select unnest({}::float8[])::float4)::text").format(singles)
    ((back,),) = source16.texts(ours)
    assert back == "{" + ",".join(str(text) for text in columns[0]) + "}"
    assert doubles == [float(str(text)) for text in columns[1]]
    assert not any(math.isinf(value) for value in doubles if isinstance(value, float))


_DECADES = "'0001-01-01'::timestamptz + random() * interval '3652058 days'"


@pytest.mark.parametrize(
    ("type_", "expression"),
    [
        ("timestamptz", _DECADES),
        ("timestamp", f"({_DECADES})::timestamp"),
        ("date", f"({_DECADES})::date"),
        ("float8", "(random() - 0.5) * power(10::float8, (random() * 600 - 300)::int)"),
        ("numeric(18,6)", "((random() - 0.5) * 1e12)::numeric(18,6)"),
        ("numeric(38,20)", "((random() - 0.5) * power(10::float8, (random() * 34 - 17)::int))::numeric(38,20)"),
        ("numeric(5,5)", "(random() - 0.5)::numeric(5,5)"),
        ("int4", "((random() - 0.5) * 4e9)::int4"),
        ("int8", "((random() - 0.5) * 1.8e19)::numeric::int8"),
        (
            "int4[]",
            "case when random() < 0.1 then '{}' else array[(random() * 1e9)::int, null, -(random() * 9)::int] end",
        ),
        ("bytea", "sha256(random()::text::bytea)"),
    ],
)
def test_random_values_lead_back_to_their_text(source16: Source, engine: Engine, type_: str, expression: str) -> None:
    described = source16.type(type_)
    lake_type = lake_type_of(described)
    if not engine.knows(lake_type):
        return
    source16.execute("select setseed(0.25)")
    texts = [text for (text,) in source16.texts(f"select {expression} from generate_series(1, 2000)")]

    values = engine.cast(texts, lake_type)

    assert None not in values
    with source16.connection.cursor() as cursor:
        cursor.execute("create temp table if not exists sent (n serial, x text)")
        cursor.execute("truncate sent")
        cursor.executemany(f"insert into sent (x) values (cast(%s as {type_}))", [(value,) for value in values])
    assert [text for (text,) in source16.texts("select x from sent order by n")] == texts

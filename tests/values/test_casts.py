"""Text from the server, cast by Spark: the values are the driver's own, and they lead back to the same text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal

import psycopg
import pytest
from psycopg import sql
from pyspark.sql import SparkSession

from penstock.values.casts import cast_sql
from penstock.values.lake_types import Mapping, mapping
from penstock.values.misfits import misfit_sql
from penstock.values.pgtype import PgType
from tests.values.cases import CASES, FOREIGN, SETUP, Case
from tests.values.conftest import Source, cast_columns

pytestmark = pytest.mark.spark


def cases(source: Source) -> list[Case]:
    major = source.connection.info.server_version // 10000
    return [case for case in CASES if case.since <= major and (case.type != "xml" or has_xml(source))]


def has_xml(source: Source) -> bool:
    """Return whether the server was built with libxml; the embedded one was not."""
    try:
        source.execute("select '<a/>'::xml")
    except psycopg.errors.FeatureNotSupported:
        return False
    return True


@pytest.fixture
def shop(source: Source) -> Source:
    """A source with the types of the case table."""
    source.execute(SETUP)
    return source


@pytest.fixture(params=["true", "false"], ids=["ansi", "no-ansi"])
def ansi(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[None]:
    """Spark's two ways to treat a bad value; a cast of ours must not notice."""
    before = spark.conf.get("spark.sql.ansi.enabled", "true")
    spark.conf.set("spark.sql.ansi.enabled", request.param)
    yield
    spark.conf.set("spark.sql.ansi.enabled", str(before))


def rendered(source: Source, type: str, literals: tuple[str, ...]) -> list[str | None]:
    values = sql.SQL(", ").join(
        sql.SQL("({}, cast({} as {}))").format(n, text, sql.SQL(type)) for n, text in enumerate(literals)
    )
    return [row[0] for row in source.texts(sql.SQL("select x from (values {}) as t(n, x) order by n").format(values))]


def same(left: object, right: object) -> bool:
    """Compare as PostgreSQL renders: NaN is NaN, minus zero is not zero, and a scale counts."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return repr(left) == repr(right)
    if isinstance(left, Decimal) and isinstance(right, Decimal):
        return left.as_tuple() == right.as_tuple()
    return type(left) is type(right) and left == right


def test_every_type_of_the_case_table_has_the_lake_type_that_the_table_says(shop: Source) -> None:
    for case in cases(shop):
        assert mapping(shop.type(case.type)) == Mapping(case.lake, exact=case.lake == "string"), case


@pytest.mark.usefixtures("ansi")
def test_values_that_fit_are_the_drivers_own_and_lead_back_to_their_text(shop: Source, spark: SparkSession) -> None:
    chosen = cases(shop)
    columns = [[*rendered(shop, case.type, case.fits), None] for case in chosen]
    casts = [cast_sql(f"c{n}", shop.type(case.type)) for n, case in enumerate(chosen)]
    for case, texts, values in zip(chosen, columns, cast_columns(spark, columns, casts), strict=True):
        assert values.pop() is None
        assert None not in values, case
        for literal, text, value in zip(case.fits, texts, values, strict=False):
            ((back,),) = shop.texts(f"select cast(%s as {case.type})", value)
            assert back == text, (case, literal)
            if case.lake != "string" and case.lake != "array<string>":
                own = shop.decoded(f"select cast(%s as {case.known_as or case.type})", literal)
                assert same(value, as_stored(own, case)), (case, literal)


def as_stored(value: object, case: Case) -> object:
    """Bring a driver's value to what differs by design: an unscaled value of a numeric with a scale below zero."""
    return value.quantize(Decimal(1)) if case.type == "numeric(3,-2)" and isinstance(value, Decimal) else value


def misfitting(shop: Source) -> Iterator[tuple[PgType, list[str | None]]]:
    for case in cases(shop):
        if case.misfits:
            yield shop.type(case.type), rendered(shop, case.type, case.misfits)
    for name, texts in FOREIGN.items():
        yield shop.type(name), list(texts)


@pytest.mark.usefixtures("ansi")
def test_values_that_do_not_fit_are_null_and_named_as_misfits(shop: Source, spark: SparkSession) -> None:
    types, columns = zip(*misfitting(shop), strict=True)
    casts = [cast_sql(f"c{n}", type) for n, type in enumerate(types)]
    reasons = [str(misfit_sql(f"c{n}", type)) for n, type in enumerate(types)]
    for name, texts, values in zip(types, columns, cast_columns(spark, columns, casts), strict=True):
        assert values == [None] * len(values), (name, texts)
    for name, texts, flags in zip(types, columns, cast_columns(spark, columns, reasons), strict=True):
        assert flags == [True] * len(flags), (name, texts)


def test_values_that_fit_and_nulls_are_not_misfits(shop: Source, spark: SparkSession) -> None:
    chosen = [case for case in cases(shop) if case.lake != "string"]
    columns = [[*rendered(shop, case.type, case.fits), None] for case in chosen]
    reasons = [str(misfit_sql(f"c{n}", shop.type(case.type))) for n, case in enumerate(chosen)]
    for case, flags in zip(chosen, cast_columns(spark, columns, reasons), strict=True):
        assert flags == [False] * len(flags), case


def test_a_misfit_is_recognised_from_the_typed_column_alone(shop: Source) -> None:
    assert misfit_sql("t.a", shop.type("date"), typed="d.a") == "(t.a is not null and d.a is null)"


def test_an_exact_text_is_itself_and_never_a_misfit(shop: Source) -> None:
    for name in ("text", "numeric", "mood", "interval", "box[]"):
        assert cast_sql("a.b", shop.type(name)) == "a.b"
        assert misfit_sql("a.b", shop.type(name)) is None


def test_a_float_is_the_nearest_one_bit_by_bit(source16: Source, spark: SparkSession) -> None:
    source16.execute("select setseed(0.5)")
    query = """
        select x::float4, x from (
            select (random() - 0.5) * power(10::float8, (random() * 60 - 30)::int) as x from generate_series(1, 2000)
        ) as numbers
    """
    columns = [list(column) for column in zip(*source16.texts(query), strict=True)]
    types = [source16.type("float4"), source16.type("float8")]
    singles, doubles = cast_columns(spark, columns, [cast_sql(f"c{n}", type) for n, type in enumerate(types)])
    ours = sql.SQL("select array(select unnest({}::float8[])::float4)::text").format(singles)
    ((back,),) = source16.texts(ours)
    assert back == "{" + ",".join(str(text) for text in columns[0]) + "}"
    assert doubles == [float(str(text)) for text in columns[1]]
    assert not any(math.isinf(value) for value in doubles if isinstance(value, float))

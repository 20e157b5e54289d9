"""Which change of a type keeps every value: the casts that PostgreSQL's documentation names, and their neighbours that do not."""

import pytest

from penstock.values.pgtype import PgType, builtin
from penstock.values.type_change import cast_keeps, followed, is_real, sent_as_real, sent_keeps, widened, widened_real

BOOL, BYTEA, INT8, INT2, INT4, TEXT, REAL, DOUBLE = 16, 17, 20, 21, 23, 25, 700, 701
INT2S, INT4S, INT8S, TEXTS, REALS, DOUBLES = 1005, 1007, 1016, 1009, 1021, 1022
VARCHAR, TIMESTAMP, TIMESTAMPTZ, NUMERIC = 1043, 1114, 1184, 1700


def of(name: str, typmod: int = -1, **changes: object) -> PgType:
    return PgType(**{"oid": 1, "typmod": typmod, "schema": "pg_catalog", "name": name, "kind": "b"} | changes)  # type: ignore[arg-type]


def numeric(precision: int, scale: int) -> int:
    return (precision << 16 | scale & 0x7FF) + 4


def domain(base: PgType) -> PgType:
    return of("positive", base.typmod, kind="d", schema="public", base=base)


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        pytest.param((INT4, -1), (INT4, -1), True, id="the same type"),
        pytest.param((INT2, -1), (INT4, -1), True, id="smallint to integer"),
        pytest.param((INT2, -1), (INT8, -1), True, id="smallint to bigint"),
        pytest.param((INT4, -1), (INT8, -1), True, id="integer to bigint"),
        pytest.param((INT8, -1), (INT4, -1), False, id="bigint to integer may fail"),
        pytest.param((INT4, -1), (INT2, -1), False, id="integer to smallint may fail"),
        pytest.param((INT2S, -1), (INT8S, -1), True, id="an array of smallint to one of bigint"),
        pytest.param((INT2S, -1), (INT4S, -1), True, id="an array of smallint to one of integer"),
        pytest.param((INT4S, -1), (INT8S, -1), True, id="an array of integer to one of bigint"),
        pytest.param((INT4S, -1), (INT2S, -1), False, id="an array of integer to one of smallint"),
        pytest.param((REAL, -1), (DOUBLE, -1), True, id="real to double precision"),
        pytest.param((DOUBLE, -1), (REAL, -1), False, id="double precision to real is rounded"),
        pytest.param((REALS, -1), (DOUBLES, -1), False, id="an array of real is read as texts"),
        pytest.param((INT4, -1), (TEXT, -1), False, id="a number to a text"),
        pytest.param((VARCHAR, 14), (VARCHAR, 24), True, id="a longer varchar"),
        pytest.param((VARCHAR, 14), (VARCHAR, 14), True, id="a varchar as long as before"),
        pytest.param((VARCHAR, 24), (VARCHAR, 14), False, id="a shorter varchar cuts"),
        pytest.param((VARCHAR, 24), (VARCHAR, -1), True, id="a varchar of any length"),
        pytest.param((VARCHAR, 24), (TEXT, -1), True, id="varchar to text"),
        pytest.param((VARCHAR, -1), (TEXT, -1), True, id="varchar of any length to text"),
        pytest.param((VARCHAR, -1), (VARCHAR, 24), False, id="a varchar of any length to one of some"),
        pytest.param((TEXT, -1), (VARCHAR, 24), False, id="text to varchar cuts"),
        pytest.param((TEXT, -1), (VARCHAR, -1), False, id="text to varchar of any length is not asked for"),
        pytest.param((NUMERIC, numeric(8, 2)), (NUMERIC, numeric(10, 2)), True, id="more digits"),
        pytest.param((NUMERIC, numeric(10, 2)), (NUMERIC, numeric(8, 2)), False, id="fewer digits"),
        pytest.param((NUMERIC, numeric(8, 2)), (NUMERIC, numeric(10, 3)), False, id="another scale adds zeros"),
        pytest.param((NUMERIC, numeric(10, 3)), (NUMERIC, numeric(10, 2)), False, id="a smaller scale rounds"),
        pytest.param(
            (NUMERIC, numeric(8, -2)), (NUMERIC, numeric(10, -2)), True, id="more digits of a scale below zero"
        ),
        pytest.param((NUMERIC, numeric(8, 2)), (NUMERIC, numeric(10, -2)), False, id="a scale below zero rounds"),
        pytest.param(
            (NUMERIC, numeric(8, 0)), (NUMERIC, numeric(8, -1024)), False, id="scales that differ in the sign only"
        ),
        pytest.param((NUMERIC, numeric(10, 3)), (NUMERIC, -1), True, id="any numeric holds one of some digits"),
        pytest.param((NUMERIC, -1), (NUMERIC, numeric(38, 2)), False, id="any numeric to one of some digits"),
        pytest.param((NUMERIC, -1), (NUMERIC, numeric(10, -5)), False, id="to one whose typmod ends in ones only"),
        pytest.param((NUMERIC, numeric(8, 0)), (INT4, -1), False, id="numeric to integer"),
        pytest.param((VARCHAR, numeric(8, 0)), (NUMERIC, -1), False, id="varchar to numeric"),
        pytest.param((TIMESTAMP, -1), (TIMESTAMPTZ, -1), False, id="timestamp to timestamptz moves values"),
    ],
)
def test_the_servers_cast_keeps_every_value(before: tuple[int, int], after: tuple[int, int], kept: bool) -> None:
    assert cast_keeps(before, after) is kept


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        pytest.param(of("int4"), of("int4"), True, id="the same type"),
        pytest.param(of("int4"), domain(of("int4")), True, id="a domain over the type"),
        pytest.param(domain(domain(of("int4"))), of("int4"), True, id="a domain over a domain to its base"),
        pytest.param(of("int4"), of("int8", oid=2), False, id="a wider number is another type"),
        pytest.param(of("text"), of("varchar", 24), True, id="text to varchar"),
        pytest.param(of("varchar", 14), of("text"), True, id="varchar to text"),
        pytest.param(of("citext", schema="public"), of("text"), True, id="citext to text"),
        pytest.param(of("text", kind="e"), of("text"), False, id="an enum called text"),
        pytest.param(
            of("_varchar", element=of("varchar")), of("_text", element=of("text")), True, id="arrays of texts"
        ),
        pytest.param(
            of("_int4", element=of("int4")), of("_text", oid=2, element=of("text")), False, id="an array of numbers"
        ),
        pytest.param(of("numeric", numeric(8, 2)), of("numeric", numeric(10, 2)), True, id="more digits of one scale"),
        pytest.param(of("numeric", numeric(10, 2)), of("numeric", numeric(8, 2)), False, id="the lake has more digits"),
        pytest.param(
            of("_positive", element=domain(of("int4"))),
            of("_int4", element=of("int4")),
            True,
            id="an array of a domain",
        ),
        pytest.param(
            of("_citext", schema="public", element=of("citext", schema="public")),
            of("_varchar", element=of("varchar", 24)),
            True,
            id="an array of citext to one of varchar",
        ),
        pytest.param(
            of("_text", element=of("text")),
            of("_text", element=of("text", kind="e")),
            False,
            id="an array of an enum called text",
        ),
        pytest.param(of("mood", kind="e"), of("mood", oid=2, kind="e"), False, id="another enum of the same name"),
        pytest.param(
            of("mood", kind="e"), of("feeling", schema="app", kind="e"), True, id="an enum that was renamed and moved"
        ),
        pytest.param(of("text"), of("_text", oid=2, element=of("text")), False, id="a text to an array of texts"),
        pytest.param(of("json"), of("jsonb", oid=2), False, id="json renders otherwise than jsonb"),
    ],
)
def test_values_stand_as_they_are_in_a_column_of_the_new_type(before: PgType, after: PgType, same: bool) -> None:
    assert followed(before, after) is same


@pytest.mark.parametrize(
    ("before", "after", "wider"),
    [
        (INT2, INT4, True),
        (INT4, INT8, True),
        (INT4, INT2, False),
        (INT4S, INT8S, True),
        (REAL, DOUBLE, True),
        (INT4, INT4, False),
        (INT4, TEXT, False),
    ],
)
def test_a_column_becomes_wider_also_as_a_domain(before: int, after: int, wider: bool) -> None:
    old, new = builtin(before, -1), builtin(after, -1)

    assert widened(old, new) is wider
    assert widened(domain(old), domain(new)) is wider
    assert sent_keeps(before, domain(new)) is wider


def test_only_what_was_sent_as_real_is_rounded_where_it_is_double_precision_now() -> None:
    real, double = builtin(REAL, -1), builtin(DOUBLE, -1)

    assert [sent_as_real(*each) for each in ((REAL, double), (REAL, real), (DOUBLE, double), (INT4, double))] == [
        True,
        False,
        False,
        False,
    ]
    assert [is_real(each) for each in (real, domain(real), double)] == [True, True, False]


@pytest.mark.parametrize(
    ("text", "wider"),
    [
        ("0.1", "0.10000000149011612"),
        ("1", "1.0"),
        ("-0", "-0.0"),
        ("1e+20", "1.0000000200408773e+20"),
        ("NaN", "NaN"),
        ("Infinity", "Infinity"),
        ("-Infinity", "-Infinity"),
    ],
)
def test_a_real_is_widened_as_the_server_does_it(text: str, wider: str) -> None:
    assert widened_real(text) == wider

"""Bounds of partitions as the server prints them: what is read, what is left to a copy, and which exclude each other."""

import itertools

import pytest

from penstock.shapes.partition_bounds import (
    Condition,
    apart,
    by_attnum,
    data,
    found_in_lake,
    joined,
    parse_bound,
)
from stack.servers.postgres import Database

TABLES = {
    "i": (
        "k int",
        "range",
        ["from (-10) to (0)", "from (0) to (100)", "from (100) to (maxvalue)", "from (minvalue) to (-10)"],
    ),
    "b": ("k bigint", "list", ["in (1, -5000000000)", "in (2)"]),
    "d": ("k date", "range", ["from ('2026-01-01') to ('2026-02-01')", "from ('2026-02-01') to ('2026-03-01')"]),
    "t": (
        "k timestamp",
        "range",
        ["from ('2026-01-01') to ('2026-01-01 12:30:00.5')", "from ('2026-02-01') to ('2026-03-01')"],
    ),
    "z": (
        "k timestamptz",
        "range",
        ["from ('2026-01-01 +02') to ('2026-02-01')", "from ('2026-02-01') to ('2026-03-01')"],
    ),
    "s": ("k text", "list", ["in ('a', 'it''s, (b)', '')", "in ('NULL')"]),
}
OPEN = {
    "e": (
        "k date",
        "range",
        [
            "from ('2026-01-01') to (maxvalue)",
            "from (minvalue) to ('2025-01-01')",
            "from ('2025-01-01') to ('2026-01-01')",
        ],
    ),
    "n": ("k int", "list", ["in (1, null)", "in (2)"]),
}
LEFT = {
    "y": ("k date", "range", ["from ('2025-01-01') to ('12025-01-01')"]),
    "x": ("k text", "range", ["from ('a') to ('b')"]),
    "h": ("k int", "hash", ["with (modulus 2, remainder 0)"]),
    "f": ("k int", "list", ["in (7)"]),
}


def levels(database: Database, name: str, columns: str, strategy: str, bounds: list[str]) -> list[tuple[str, int, str]]:
    database.execute(f"create table {name} ({columns}) partition by {strategy} (k)")
    for number, bound in enumerate(bounds):
        database.execute(f"create table {name}_{number} partition of {name} for values {bound}")
    if name == "f":
        database.execute("create table f_d partition of f default")
    return database.execute(
        "select p.partstrat::text, a.atttypid::bigint, pg_get_expr(c.relpartbound, c.oid) from pg_inherits i "
        "join pg_class c on c.oid = i.inhrelid join pg_partitioned_table p on p.partrelid = i.inhparent "
        f"join pg_attribute a on a.attrelid = i.inhparent and a.attname = 'k' where i.inhparent = '{name}'::regclass order by c.relname"
    )


@pytest.mark.parametrize("name", TABLES)
def test_partitions_of_one_table_are_apart_and_each_holds_what_it_holds(database16: Database, name: str) -> None:
    found = [
        parse_bound([(strategy, "k", oid, text)]) for strategy, oid, text in levels(database16, name, *TABLES[name])
    ]

    assert all(found_in_lake(bound) for bound in found)
    assert all(apart(one, other) for one, other in itertools.permutations(found, 2))
    assert not any(apart(one, one) for one in found)
    assert [data(by_attnum(bound, {"k": 1})) != [] for bound in found] == [True] * len(found)


@pytest.mark.parametrize("name", OPEN)
def test_bounds_of_values_that_the_lake_may_not_hold_tell_partitions_apart_and_find_no_rows(
    database16: Database, name: str
) -> None:
    *found, last = [
        parse_bound([(strategy, "k", oid, text)]) for strategy, oid, text in levels(database16, name, *OPEN[name])
    ]

    assert all(apart(one, other) for one, other in itertools.permutations([*found, last], 2))
    assert not any(map(found_in_lake, found))
    assert found_in_lake(last)


@pytest.mark.parametrize("name", [name for name in LEFT if name != "f"])
def test_bounds_that_the_lake_cannot_compare_say_nothing(database16: Database, name: str) -> None:
    found = [parse_bound([(strategy, "k", oid, text)]) for strategy, oid, text in levels(database16, name, *LEFT[name])]

    assert found == [()] * len(found)
    assert not any(map(found_in_lake, found))


def test_a_default_partition_has_no_bounds_and_is_apart_from_nothing(database16: Database) -> None:
    one, default = (
        parse_bound([(strategy, "k", oid, text)]) for strategy, oid, text in levels(database16, "f", *LEFT["f"])
    )

    assert default == ()
    assert not apart(one, default)


def test_levels_add_up_and_one_that_is_not_known_says_nothing(database16: Database) -> None:
    inner, outer = ("r", "n", 23, "FOR VALUES FROM (0) TO (10)"), ("l", "region", 25, "FOR VALUES IN ('eu')")
    us = ("l", "region", 25, "FOR VALUES IN ('us')")

    assert apart(parse_bound([outer, inner]), parse_bound([us, inner]))
    assert not apart(parse_bound([outer, inner]), parse_bound([outer]))
    assert apart(parse_bound([outer, None]), parse_bound([us, None]))
    assert by_attnum(parse_bound([outer, inner]), {"n": 1}) == by_attnum(parse_bound([inner]), {"n": 1})


def test_ranges_that_follow_on_one_another_are_joined_within_whatever_else_is_the_same() -> None:
    days = [Condition(2, "date", f"2026-0{month}-01", f"2026-0{month + 1}-01") for month in range(1, 6)]
    year, eu, us = Condition(2, "date", "2026-01-01", "2027-01-01"), *(Condition(1, "text", values=(v,)) for v in "eu")
    low, high = Condition(3, "int", None, "5"), Condition(3, "int", "5", None)

    assert joined([(days[2],), (days[0],), (days[1],), (days[4],)]) == [
        (Condition(2, "date", "2026-01-01", "2026-04-01"),),
        (days[4],),
    ]
    assert joined([(days[0],), (days[2],), (days[3],)]) == [
        (days[0],),
        (Condition(2, "date", "2026-03-01", "2026-05-01"),),
    ]
    assert joined([(year, days[0]), (year, days[1])]) == [(Condition(2, "date", "2026-01-01", "2026-03-01"),)]
    assert joined([(eu, days[0]), (us, days[1]), (eu, days[1])]) == [
        (eu, Condition(2, "date", "2026-01-01", "2026-03-01")),
        (us, days[1]),
    ]
    assert joined([(high,), (low,), (eu,), (us,)]) == [(eu,), (us,), (Condition(3, "int", None, None),)]


def test_a_partition_bounded_outside_its_parent_holds_no_row() -> None:
    low, high, over = (Condition(1, "int", *ends) for ends in (("0", "10"), ("10", "20"), ("5", "15")))
    eu, us = Condition(2, "text", values=("de", "fr")), Condition(2, "text", values=("us", "fr"))
    days = Condition(3, "date", None, "2026-02-01"), Condition(3, "date", "2026-02-01", None)

    assert joined([(low, high), (eu, low, Condition(2, "text", values=("us",))), days]) == []
    assert joined([(low, over)]) == [(Condition(1, "int", "5", "10"),)]
    assert joined([(eu, us)]) == [(Condition(2, "text", values=("fr",)),)]
    assert joined([(high, low), (over,)]) == [(over,)]

"""Which rows the bounds of partitions hold is what PostgreSQL says: of trees made at random, also with children outside their parents."""

import itertools
import random

import duckdb
import psycopg
import pytest

from penstock.engine.changes import within
from penstock.engine.order import Column, Layout, MergeOrder
from penstock.shapes import partition_bounds
from penstock.source.session import SourceSession
from penstock.source.text_rows import outside_bound
from tests.source.conftest import all_tables

COLUMNS = (Column("a", "int", (1,)), Column("b", "string", (2,)), Column("d", "date", (3,)))
ORDER = MergeOrder(COLUMNS, (), (), (), Layout(""))
WORDS = ("x", "it''s", "z")
DAYS = tuple(f"2026-0{month}-01" for month in range(1, 7))
NAMES = {1: "a", 2: "b", 3: "d"}
FILL = f"""
do $$
declare row record;
begin
  for row in
    select * from unnest(array[-1, 0, 4, 5, 12, 19, 20, 33, 40, null]) as a, unnest(array['x', 'it''s', 'z', 'q', null]) as b,
    unnest(array['2025-12-31', {", ".join(f"'{day}'" for day in DAYS)}, 'infinity', null]::date[]) as d
  loop
    begin
      insert into root values (row.a, row.b, row.d);
    exception when check_violation then null;
    end;
  end loop;
end $$
"""


def children(dice: random.Random) -> tuple[str, list[str]]:
    """Return by what a table is partitioned, and the bounds of its partitions, wherever its own lie."""
    column = dice.choice("abd")
    if column == "b":
        words = [f"'{word}'" for word in dice.sample(WORDS, len(WORDS))] + ["null"] * dice.randrange(2)
        cut = dice.randrange(1, len(words))
        return "list (b)", [f"for values in ({', '.join(part)})" for part in (words[:cut], words[cut:])]
    ends = (
        sorted(dice.sample(range(0, 45, 5), 3))
        if column == "a"
        else [f"'{day}'" for day in sorted(dice.sample(DAYS, 3))]
    )
    ranges = ["minvalue", *ends, "maxvalue"] if dice.random() < 0.3 else ends
    return f"range ({column})", [
        f"for values from ({low}) to ({high})" for low, high in itertools.pairwise(map(str, ranges))
    ]


def tree(dice: random.Random, parent: str, depth: int) -> tuple[str, list[str]]:
    """Return how a table is partitioned, and the statements that make what is below it."""
    by, bounds = children(dice)
    made = []
    for number, bound in enumerate([*bounds, "default"] if dice.random() < 0.7 else bounds):
        name = f"{parent}_{number}"
        if depth and dice.random() < 0.6:
            below, more = tree(dice, name, depth - 1)
            made += [f"create table {name} partition of {parent} {bound} partition by {below}", *more]
        else:
            made.append(f"create table {name} partition of {parent} {bound}")
    return by, made


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_bounds_hold_the_rows_that_the_server_puts_into_their_partitions(
    conn: SourceSession, writer: psycopg.Connection, seed: int
) -> None:
    dice = random.Random(seed)
    for _ in range(5):
        by, made = tree(dice, "root", 2)
        writer.execute(f"create table root (a int, b text, d date) partition by {by}; {'; '.join(made)}")
        writer.execute(FILL)
        rows = writer.execute("select tableoid::bigint, a, b, d::text from root").fetchall()
        (root,) = (table for table in all_tables(conn) if table.name == "root")
        exact = [
            leaf
            for leaf in root.leaves
            if len(leaf.bound) == len(leaf.chain) and partition_bounds.found_in_lake(leaf.bound)
        ]
        some = dice.sample(exact, dice.randrange(len(exact) + 1))
        bounds = partition_bounds.joined(leaf.bound for leaf in some)
        bounds = [partition_bounds.named(bound, NAMES) for bound in bounds]
        oids = {leaf.oid for leaf in some}
        inside = {row[1:] for row in rows if row[0] in oids}

        assert at_the_server(writer, bounds) == inside
        assert in_duckdb([row[1:] for row in rows], bounds) == inside

        known = (partition_bounds.named(leaf.bound, NAMES) for leaf in root.leaves)
        for one, other in itertools.combinations(known, 2):
            if partition_bounds.apart(one, other):
                assert not at_the_server(writer, [one]) & at_the_server(writer, [other])
        writer.execute("drop table root")


def at_the_server(writer: psycopg.Connection, bounds: list[partition_bounds.Bound]) -> set[tuple[object, ...]]:
    """Return the rows that the server finds within the bounds."""
    inside = " or ".join(f"not ({outside_bound(bound)})" for bound in bounds) or "false"
    return set(writer.execute(f"select a, b, d::text from root where {inside}").fetchall())


def in_duckdb(rows: list[tuple[object, ...]], bounds: list[partition_bounds.Bound]) -> set[tuple[object, ...]]:
    """Return the rows that a merge finds within the bounds."""
    data = [
        [[each.column, each.kind, each.low, each.high, each.values and list(each.values)] for each in bound]
        for bound in bounds
    ]
    sql, _ = within(ORDER, data, lambda place: COLUMNS[place].name)
    with duckdb.connect() as db:
        db.execute("create table t (a int, b varchar, d date)")
        db.executemany("insert into t values ($1, $2, try_cast($3 as date))", rows)
        found = db.execute(f"select a, b, d::varchar from t where {sql}").fetchall()
    return set(found)

"""The torture's grammar is pure and valid: the same seed gives the same statements, and a real server takes most of them."""

import random

import psycopg
import pytest

from stack.servers.postgres import Database
from torture import grammar, model, publication, stand, writers
from torture.model import Model
from torture.rules import RULES


@pytest.fixture
def source(database16: Database) -> Database:
    """The tables of the stand, on a publication of all."""
    database16.execute(stand.TABLES)
    database16.execute(stand.FILLED)
    database16.execute(
        "create publication pub for table plain, toasted, parted, bag, pair with (publish_via_partition_root)"
    )
    return database16


def look(source: Database) -> Model:
    with source.connect() as conn:
        return model.read(conn, "pub")


def test_the_same_seed_gives_the_same_statements(source: Database) -> None:
    now = look(source)

    def some(seed: int) -> list[object]:
        dice = random.Random(seed)
        changes = [grammar.draw(dice, now, full=True) for _ in range(50)]
        return [*changes, *(writers.statement(dice, now, table) for table in now.roots)]

    assert some(1) == some(1)
    assert some(1) != some(2)


def test_a_server_takes_what_each_rule_makes(source: Database) -> None:
    source.execute("create table joined1 (id int primary key); create table joined2 (id int primary key)")
    never = [rule.name for rule in RULES if not any(takes(source, rule.name, seed) for seed in range(12))]
    assert never == []


def takes(source: Database, rule: str, seed: int) -> bool:
    change = grammar.draw(random.Random(seed), look(source), full=True, only=[rule])
    return change is not None and runs(source, change.statements)


def test_most_statements_of_writers_and_of_the_publication_are_taken(source: Database) -> None:
    dice, now = random.Random(1), look(source)
    texts = [writers.statement(dice, now, dice.choice(now.roots)) for _ in range(150)]
    assert sum(runs(source, [text]) for text in texts) > 100

    changes = [publication.change(dice, look(source), "pub") or [] for _ in range(20)]
    assert sum(runs(source, change) for change in changes) > 10
    for _ in range(2):
        for text in publication.restored(look(source), "pub"):
            source.execute(text)
    options = source.execute("select pubinsert, pubupdate, pubdelete, pubtruncate, pubviaroot from pg_publication")
    assert publication.whole(options[0], look(source))


def runs(source: Database, statements: list[str] | tuple[str, ...]) -> bool:
    try:
        for text in statements:
            source.execute(text)
    except psycopg.Error:
        return False
    return True


def test_a_prepared_change_of_a_table_ends_before_the_comparison_and_one_of_rows_may_stay(source: Database) -> None:
    name = source.name
    source.execute(f"begin; update plain set v = 1 where id = 1; prepare transaction 'rows {name}'")
    source.execute(f"begin; alter table nest add column x int; prepare transaction 'ddl {name}'")
    writers_ = writers.Writers(source, lambda *_: None)

    writers_.quiesce(random.Random(1), keep=True)
    left = source.execute("select gid from pg_prepared_xacts where database = current_database()")
    writers_.quiesce(random.Random(1))

    assert left == [(f"rows {name}",)]
    assert source.execute("select gid from pg_prepared_xacts where database = current_database()") == []

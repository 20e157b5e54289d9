"""Patterns choose tables as an operator means them: whole partitioned tables, nothing that is not in the WAL."""

import pytest
from pydantic import ValidationError

from penstock.config.model import Tables
from penstock.source.catalog import Relation
from penstock.source.patterns import Choice, choose


def relation(
    oid: int, name: str, kind: str = "r", *parents: int, persistence: str = "p", partition: bool = False
) -> Relation:
    schema, _, table = name.partition(".")
    return Relation(oid, schema, table, kind, persistence, partition, list(parents))


SHOP = [
    relation(1, "shop.Order"),
    relation(2, "shop.order_line"),
    relation(3, "shop.order_view", "v"),
    relation(4, "shop.totals", "m"),
    relation(5, "shop.elsewhere", "f"),
    relation(6, "shop.scratch", persistence="u"),
    relation(10, "shop.events", "p"),
    relation(11, "shop.events_1", "r", 10, partition=True),
    relation(12, "shop.events_2", "p", 10, partition=True),
    relation(13, "shop.events_2_a", "r", 12, partition=True),
    relation(14, "shop.events_far", "f", 10, partition=True),
    relation(20, "shop.below", "r", 2),
    relation(30, "audit.a.b"),
]


def chosen(*include: str, exclude: tuple[str, ...] = ()) -> list[int]:
    return [each.oid for each in chose(*include, exclude=exclude).chosen]


def chose(*include: str, exclude: tuple[str, ...] = ()) -> Choice:
    return choose(SHOP, Tables(include=list(include), exclude=list(exclude)))


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        (["shop.Order"], [], [1]),
        (["shop.order"], [], []),  # case counts
        (["*.order_line"], [], [2]),
        (["shop.*"], [], [1, 2, 10, 20]),  # partitions come with their table, inheriting tables do not
        (["shop.*"], ["shop.events*"], [1, 2, 20]),
        (["shop.*order*"], [], [2]),
        (["shop.events_1"], [], [11]),  # a partition alone
        (["shop.events_2*"], [], [12]),  # a partition that has partitions, and covers them
        (["shop.events_1", "shop.events_2_a"], [], [11, 13]),
        (["shop.events*"], ["shop.events"], [11, 12]),
        (['"audit"."a.b"'], [], [30]),
        (['audit."a.b"'], [], [30]),
        (['audit."*"'], [], []),  # a star in quotes is a star
        (["audit.*"], [], [30]),
        (["*.*"], ["shop.*"], [30]),
    ],
)
def test_patterns_choose(include, exclude, expected):
    assert chosen(*include, exclude=tuple(exclude)) == expected


def test_what_cannot_be_published_is_named_with_the_reason():
    left_out = {each.qualified: reason for each, reason in chose("shop.*").left_out}

    assert left_out == {
        "shop.order_view": "a view",
        "shop.totals": "a materialised view",
        "shop.elsewhere": "a foreign table",
        "shop.scratch": "an unlogged table",
    }


def test_patterns_without_effect_are_named():
    choice = chose("shop.*", "shop.order_view", "shop.nothing", exclude=("shop.events", "shop.misspelt"))

    assert choice.unmatched_include == ("shop.order_view", "shop.nothing")
    assert choice.unmatched_exclude == ("shop.misspelt",)


def test_a_pattern_whose_tables_are_all_excluded_has_no_effect():
    assert chose("shop.Order", exclude=("shop.*",)).unmatched_include == ("shop.Order",)


def test_a_partition_cannot_be_excluded_from_its_chosen_table():
    choice = chose("shop.*", exclude=("shop.events_2_a",))

    assert [each.name for each in choice.inseparable] == ["events_2_a"]


@pytest.mark.parametrize("text", ["orders", "", ".", "shop.", "a.b.c", 'shop."a', 'shop.a b"c', '"".a'])
def test_an_unreadable_pattern_is_refused_with_the_form_that_is_expected(text):
    with pytest.raises(ValidationError, match=r"a pattern schema\.table"):
        Tables(include=[text])


def test_a_pattern_for_everything_is_never_without_effect():
    assert choose([], Tables(include=["*.*"])).unmatched_include == ()
    assert choose([], Tables(include=["*.*", "public.*"])).unmatched_include == ("public.*",)

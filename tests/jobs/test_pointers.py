"""Which tables of the lake can take other names in one cut, and which have made way, as their names tell."""

import pytest

from penstock.jobs.pointers import Rename, aside, is_left_behind, place_of, possible, rebuilt, replaced


def rename(oid: int, before: str, after: str) -> Rename:
    return Rename(oid, ("ns", before), ("ns", after))


def test_a_chain_that_waits_for_a_table_which_stays_waits_whole_and_others_go() -> None:
    chain = (rename(1, "a", "b"), rename(2, "b", "c"), rename(3, "c", "d"))
    other = (rename(4, "x", "y"), Rename(4, ("ns", "x__changelog"), ("ns", "y__changelog"), "changelog"))

    assert possible((*chain, *other)) == (*chain, *other)
    assert possible((*chain, *other), staying=[3]) == other
    assert possible((*chain, *other), staying=[1]) == (*chain[1:], *other)
    assert possible((*chain, *other), staying=[4]) == chain


def test_tables_that_change_places_go_together_or_not_at_all() -> None:
    circle = (rename(1, "a", "b"), rename(2, "b", "c"), rename(3, "c", "a"))

    assert possible(circle) == circle
    assert possible(circle, staying=[2]) == ()


@pytest.mark.parametrize(
    ("target", "left"),
    [
        (aside("shop", ("shop", "public", "t"), 1), True),
        (aside("shop", ("shop", "public", "t"), 2), False),
        (aside("shop", ("shop", "public", "t"), 10), False),
        (replaced("shop", ("shop", "public", "t"), "20261121t091500123_3f9a1c2d"), True),
        (rebuilt("shop", ("shop", "public", "t"), "given_up"), True),
        (rebuilt("shop", ("shop", "public", "t"), "open"), False),
        (aside("shop", ("t",), 1), True),
        (("shop", "public", "t"), False),
        (("shop", "_penstock_cuts"), False),
        (("shop2", "_penstock_era1", "t"), False),
        (("shop", "_penstock_eras", "t"), False),
        (("other", "shop", "_penstock_era1", "t"), False),
    ],
)
def test_tables_that_made_way_are_known_by_their_namespace(target: tuple[str, ...], left: bool) -> None:
    assert is_left_behind("shop", place_of(target)[0], 2, {"open"}) is left

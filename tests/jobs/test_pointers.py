"""Which tables of the lake can take other names in one cut."""

from penstock.jobs.pointers import Rename, possible


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

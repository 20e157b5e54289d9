"""Which renamed tables would have another table's name in the lake."""

from penstock.flow.schema.names import clashes
from penstock.shapes.accepted import Accepted, TableFacts
from tests.shapes.tables import shape


def to(oid: int, before: str, after: str) -> TableFacts:
    return TableFacts(
        oid, "public", after, (before,), "d", (), Accepted(shape()), (after,) if after != before else None
    )


WANTED = {1: ("a",), 2: ("b",), 3: ("c",)}


def test_names_that_are_passed_on_or_exchanged_are_free() -> None:
    assert clashes({1: to(1, "a", "b"), 2: to(2, "b", "a")}, WANTED) == {}
    assert clashes({1: to(1, "a", "b"), 2: to(2, "b", "c"), 3: to(3, "c", "d")}, WANTED) == {}


def test_a_name_that_another_table_keeps_is_taken_and_so_is_all_that_waits_for_it() -> None:
    assert clashes({1: to(1, "a", "b")}, WANTED) == {1: 2}
    assert clashes({1: to(1, "a", "b"), 2: to(2, "b", "c")}, WANTED) == {1: 2, 2: 3}


def test_of_two_tables_that_would_share_a_target_one_gets_it() -> None:
    assert clashes({1: to(1, "a", "x"), 2: to(2, "b", "x")}, WANTED) == {2: 1}

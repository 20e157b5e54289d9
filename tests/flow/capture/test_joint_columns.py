"""The relations of a window, read together: held against all histories that there could be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement, product

from hypothesis import given
from hypothesis import strategies as st

from penstock.ledger.relation_records import ColumnLook
from penstock.shapes.joint_columns import read
from penstock.shapes.relation_columns import DROPPED
from penstock.wire.messages import Relation
from tests.flow.capture.test_relation_columns import look, relation

BEFORE, AFTER = look(n1="id int", n2="a"), look(n1="id int", n3="b")


def found(looks: Sequence[ColumnLook], *sent: Relation) -> list[tuple[int, ...] | None]:
    """Read relations that are all landed, those of the same content under the same version."""
    versions = [sent.index(each) for each in sent]
    read_ = read(list(zip(sent, versions, strict=True)), looks)
    return [read_.get(version) for version in versions]


def test_a_column_that_is_added_before_another_of_its_type_is_dropped_is_known() -> None:
    both = relation("id int", "a", "b")

    assert found([BEFORE, AFTER], relation("id int", "a"), both, relation("id int", "b")) == [(1, 2), (1, 2, 3), (1, 3)]
    assert found([BEFORE, AFTER], both, relation("id int", "b")) == [(1, 2, 3), (1, 3)]
    assert found([BEFORE, AFTER], relation("id int", "a"), both) == [(1, 2), (1, 2, 3)]


def test_a_column_that_is_dropped_before_another_of_its_type_is_added_is_known_by_a_row_between() -> None:
    between = relation("id int")

    assert found([BEFORE, AFTER], relation("id int", "a"), between, relation("id int", "b")) == [(1, 2), (1,), (1, 3)]
    assert found([BEFORE, AFTER], relation("id int", "a"), relation("id int", "b")) == [None, None]


def test_what_windows_before_have_brought_is_not_taken_back() -> None:
    sent = relation("id int", "b")

    assert read([(sent, 1)], [BEFORE, AFTER]) == {1: None}
    assert read([(sent, 1)], [BEFORE, AFTER], [(1, 2, 3), (1, 3)]) == {1: (1, 3)}
    assert read([(sent, 1)], [BEFORE, AFTER], [(1,)]) == {1: None}, "of a time before the first column"
    assert read([(sent, 1)], [BEFORE, AFTER], [(1, 2, 3)]) == {1: (1, 3)}
    assert read([(sent, 1)], [BEFORE, AFTER], [(1, 2)]) == {1: None}
    assert read([(sent, 1)], [BEFORE, AFTER], [(1, DROPPED)]) == {1: None}


def test_the_same_message_for_two_columns_is_not_read() -> None:
    same = relation("id int", "a")

    assert found([BEFORE, AFTER], same, relation("id int"), same) == [None, (1,), None]


def test_a_column_of_one_that_has_gone_is_read_as_none_of_them() -> None:
    looks = [look(n1="id int", n2="a", n3="b", n4="c"), look(n1="id int", n5="d")]

    assert found(looks, relation("id int", "a", "b", "c"), relation("id int", "b"), relation("id int")) == [
        (1, 2, 3, 4),
        (1, DROPPED),
        (1,),
    ]


def test_columns_that_no_look_has_seen_leave_everything_open() -> None:
    assert found([look(n1="id int"), look(3, n1="id int", n3="b")], relation("id int")) == [None]


def test_more_readings_than_can_be_weighed_are_not_read() -> None:
    many = {f"n{n}": f"c{n}" for n in range(2, 30)}
    looks = [look(n1="id int", **many), look(29, n1="id int")]

    assert found(looks, relation("id int", *(f"c{n}" for n in range(10)))) == [None]
    assert found(looks, relation("id int")) == [(1,)]


TYPES = st.sampled_from(["", " int"])


def histories(looks: Sequence[ColumnLook], length: int) -> Iterator[list[tuple[int, ...]]]:
    """Yield which columns so many messages may have: all times of adding and dropping that fit the first and the last look."""
    first, last = looks[0].columns, looks[-1].columns
    new = sorted({n for each in looks for n in each.columns} - first.keys())
    going = sorted({n for each in looks for n in each.columns} - last.keys())
    for starts in combinations_with_replacement(range(length + 1), len(new)):
        for ends in product(range(length + 1), repeat=len(going)):
            born = dict.fromkeys(first, 0) | dict(zip(new, starts, strict=True))
            dies = dict(zip(going, ends, strict=True))
            yield [
                tuple(sorted(n for n in born if born[n] <= at < max(dies.get(n, length + 1), born[n])))
                for at in range(length)
            ]


@given(st.data())
def test_whatever_is_read_is_what_all_possible_histories_have_in_common(data: st.DataObject) -> None:
    types = data.draw(st.lists(TYPES, min_size=1, max_size=5), label="types of columns that were ever there")
    old = data.draw(st.integers(1, len(types)), label="columns at first")
    middle = data.draw(st.booleans(), label="a look in the middle")
    gone = data.draw(st.sets(st.integers(2, old) if old > 1 else st.nothing(), max_size=old - 1))
    passed = data.draw(st.sets(st.integers(old + 1, len(types)), max_size=2)) if middle and old < len(types) else set()
    names = {n: f"c{n}{type_}" for n, type_ in enumerate(types, start=1)}

    def seen(numbers: set[int], count: int) -> ColumnLook:
        return look(count, **{f"n{n}": names[n] for n in sorted(numbers)})

    everything = set(names)
    looks = [seen(set(range(1, old + 1)), old), seen(everything - gone - passed, len(types))]
    if middle:
        looks.insert(1, seen(everything, len(types)))
    possible = list(histories(looks, data.draw(st.integers(1, 4), label="messages")))
    true = data.draw(st.sampled_from(possible), label="what happened")
    renamed = data.draw(st.booleans(), label="every name is another one at each message")
    sent = [
        relation(*(f"m{at if renamed else ''}_{n}{types[n - 1]}" for n in numbers)) for at, numbers in enumerate(true)
    ]

    answers = found(looks, *sent)

    wanted = [[column.type_oid for column in each.columns] for each in sent]
    alike = [
        each
        for each in possible
        if [[look(**{f"n{n}": names[n]}).columns[n][1] for n in numbers] for numbers in each] == wanted
    ]
    for at, answer in enumerate(answers):
        same = [other for other, each in enumerate(sent) if each == sent[at]]
        columns = [set(each) for each in zip(*(history[other] for history in alike for other in same), strict=True)]
        known = tuple(next(iter(each)) if len(each) == 1 else DROPPED for each in columns)
        sure = all(len(each) == 1 or not each & looks[-1].columns.keys() for each in columns)
        assert answer == (known if sure else None)
        assert answer is None or all(n in (m, DROPPED) for n, m in zip(answer, true[at], strict=True))

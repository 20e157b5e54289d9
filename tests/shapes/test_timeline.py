"""Which of the catalog's columns a relation has, where an event trigger told what each command left, and where it may not have."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.shapes.known_shape import ColumnState, KnownShape
from penstock.shapes.timeline import History, columns_of
from penstock.wire.messages import Relation, RelationColumn

INT, TEXT = 23, 25
HERE, OTHER = "the trigger", "another trigger"
Columns = dict[int, ColumnState]


def columns(**names: str) -> Columns:
    """Columns `n1="id"`, by attnum: the first is an integer, others are texts."""
    return {int(n[1:]): (name, INT if name == "id" else TEXT, -1) for n, name in names.items()}


def look(found: Columns, count: int, generation: str | None = HERE, *, sure: bool = False, gaps: int = 0) -> KnownShape:
    return KnownShape(count, found, generation, gaps, sure=sure)


def state(found: Columns, xid: int, dropped: dict[int, int], generation: str | None = HERE) -> KnownShape:
    return KnownShape(len(found) + len(dropped), found, generation, dropped=dropped, xid=xid)


def relation(found: Columns) -> Relation:
    return Relation(7, "public", "t", "d", tuple(RelationColumn(*each, False) for each in found.values()))


BEFORE, AFTER = columns(n1="id", n2="a"), columns(n1="id", n3="a")
DROPPED = state(columns(n1="id"), 100, {2: 100})
AGAIN = state(AFTER, 101, {2: 100})
LOOKS = (look(BEFORE, 2, sure=True), look(AFTER, 3))


def test_a_column_dropped_and_added_again_is_known_by_what_was_told_last() -> None:
    history = History(LOOKS, None, [DROPPED, AGAIN])

    assert columns_of(relation(BEFORE), [0], history) == (1, 2)
    assert columns_of(relation(columns(n1="id")), [1], history) == (1,)
    assert columns_of(relation(AFTER), [2], history) == (1, 3)
    assert columns_of(relation(AFTER), [0, 2], history) is None, "one file would hold both"


def test_the_state_that_an_earlier_window_told_counts_before_the_first_of_this_one() -> None:
    ahead = (look(BEFORE, 2, sure=True), look(columns(n1="id", n4="a"), 4))

    assert columns_of(relation(AFTER), [0], History(ahead, AGAIN)) == (1, 3)
    assert columns_of(relation(AFTER), [0], History(ahead)) is None


@pytest.mark.parametrize(
    "history",
    [
        pytest.param(History((replace(LOOKS[0], generation=None), LOOKS[1]), None, [AGAIN]), id="was not there before"),
        pytest.param(History((LOOKS[0], replace(LOOKS[1], generation=OTHER))), id="was made again after"),
        pytest.param(
            History(LOOKS).within([replace(AGAIN, gaps=1)], 1, complete=True), id="said that something is missing"
        ),
        pytest.param(
            History(LOOKS, None, [state(AFTER, 101, {2: 90})]), id="an earlier transaction dropped it unnoticed"
        ),
        pytest.param(History((replace(LOOKS[0], sure=False), LOOKS[1]), None, [AGAIN]), id="the look may be later"),
        pytest.param(
            History(LOOKS, replace(AGAIN, generation=OTHER), [replace(AGAIN, generation=None)]), id="may miss commands"
        ),
        pytest.param(History(LOOKS, complete=False), id="sessions with an origin are not heard"),
    ],
)
def test_where_the_trigger_may_have_missed_something_nothing_is_guessed(history: History) -> None:
    assert columns_of(relation(BEFORE), [0], history) is None


@pytest.mark.parametrize(
    "states",
    [
        pytest.param([AGAIN, state(BEFORE, 102, {})], id="a number comes back"),
        pytest.param([DROPPED, replace(AGAIN, dropped={2: 55})], id="another transaction dropped it"),
        pytest.param(
            [state(columns(n1="id", n4="a"), 103, {2: 100, 3: 100})], id="numbers that the catalog has not given out"
        ),
        pytest.param([state(columns(n1="id", n2="a"), 103, {3: 103})], id="the catalog has what it says to be dropped"),
    ],
)
def test_states_that_cannot_follow_one_another_are_not_used_at_all(states: list[KnownShape]) -> None:
    for place in range(len(states) + 1):
        assert columns_of(relation(AFTER), [place], History(LOOKS, None, [*states])) is None


def test_a_version_that_a_column_has_again_contradicts_the_one_between() -> None:
    one, other = (replace(AGAIN, versions={1: 90, 3: version}) for version in (101, 102))

    assert not History(LOOKS, DROPPED, [one, one, other]).contradicts
    assert History(LOOKS, DROPPED, [one, other, one]).contradicts
    assert History(LOOKS, one, [other, one]).contradicts


def test_what_the_stream_says_otherwise_than_the_trigger_is_left_to_the_looks() -> None:
    history = History(LOOKS, None, [DROPPED, AGAIN])

    assert columns_of(relation(columns(n1="id", n2="b")), [2], history) == (1, 3), "by its bounds"
    strange = relation(columns(n1="id", n2="a", n3="b"))
    assert columns_of(strange, [2], history) == columns_of(strange, [0], History(LOOKS))
    added = columns(n1="id", n2="a", n3="b")
    history = History((look(columns(n1="id"), 1, sure=True), look(added, 3)), None, [state(added, 101, {})])
    assert columns_of(relation(columns(n1="id", n2="b")), [1], history) == (1, 2), (
        "though the trigger calls the third b"
    )


def test_a_column_of_each_look_is_in_each_relation() -> None:
    through = columns(n1="id", n2="a", n3="b")
    looks = (look(through, 3, sure=True), look(through, 3))

    assert columns_of(relation(columns(n1="id", n2="a")), [0], History(looks, state(through, 9, {}))) is None


def test_generated_columns_which_no_message_has_do_not_disturb() -> None:
    seen, whole = columns(n1="id", n3="b"), columns(n1="id", n2="generated", n3="b")
    more = {**whole, 4: ("c", TEXT, -1)}
    looks = (look(seen, 3, sure=True), look({**seen, 4: ("c", TEXT, -1)}, 4))

    assert columns_of(relation({**seen, 4: ("c", TEXT, -1)}), [1], History(looks, None, [state(more, 5, {})])) == (
        1,
        3,
        4,
    )


def test_transaction_ids_are_compared_across_their_end() -> None:
    last, first = 2**32 - 1, 3
    history = History(LOOKS, None, [state(AFTER, last, {2: first})])

    assert columns_of(relation(BEFORE), [0], history) == (1, 2), "a subtransaction's id comes after its transaction's"


HISTORIES = st.lists(
    st.sampled_from(["add", "drop", "rename", "rest", "unheard add", "unheard drop", "off", "lapse"]), max_size=8
)


@given(HISTORIES, st.data())
def test_a_random_history_is_read_as_it_was_or_not_at_all(steps: list[str], data: st.DataObject) -> None:
    """Commands are told, but for those that run while the trigger is off; whatever is read is what was there."""
    now: Columns = columns(n1="id", n2="a", n3="b")
    dropped: dict[int, int] = {}
    first, states, ddl_gaps, off, token = dict(now), list[KnownShape](), 0, False, 0
    rows: list[tuple[Columns, int]] = [(dict(now), 0)]
    for xid, step in enumerate(steps, start=100):
        free = [name for name in "abcdefghijkl" if name not in {column[0] for column in now.values()}]
        loose = [n for n in now if n != 1]
        if step == "off":
            off, token = not off, token + 1
        elif step == "lapse":
            ddl_gaps += 1
        elif step.endswith("add"):
            now[len(now) + len(dropped) + 1] = (data.draw(st.sampled_from(free)), TEXT, -1)
        elif step.endswith("drop") and loose:
            gone = data.draw(st.sampled_from(loose))
            del now[gone]
            dropped[gone] = xid
        elif step == "rename" and loose:
            n = data.draw(st.sampled_from(loose))
            now[n] = (data.draw(st.sampled_from(free)), *now[n][1:])
        if step.startswith("unheard") and not off:
            token += 2  # the trigger went and came
        elif step in ("add", "drop", "rename", "rest") and not off:
            logged = state(dict(now), xid, dict(dropped), f"{HERE} {token}")
            states.append(replace(logged, gaps=ddl_gaps))
        rows.append((dict(now), len(states)))
    looks = (
        look(first, 3, f"{HERE} 0", sure=True),
        look(dict(now), len(now) + len(dropped), None if off else f"{HERE} {token}"),
    )
    history = History(looks).within(states, ddl_gaps, complete=True)

    for there, place in rows:
        found = columns_of(relation(there), [place], history)
        assert found is None or all(n in (m, 0) for n, m in zip(found, there, strict=True))
        if not {"off", "lapse"} & set(steps) and not any(step.startswith("unheard") for step in steps):
            assert found == tuple(there)
        if found is None:
            assert columns_of(relation(there), [0], History(looks)) is None or states

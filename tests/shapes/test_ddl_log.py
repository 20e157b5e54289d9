"""Whether told commands have kept the values of a rewritten table's columns: only what is proven counts."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.shapes.ddl_log import Before, read_rewrites, rewrite_logged
from penstock.shapes.known_shape import FileBefore, KnownShape
from penstock.shapes.timeline import History

INT2, INT4, INT8, TEXT, VARCHAR, DOMAIN = 21, 23, 20, 25, 1043, 70000
HERE, OTHER = "the trigger", "another trigger"
FILE = 500
BEFORE = Before(FILE, {1: (INT4, -1), 2: (TEXT, -1)}, {1: "90", 2: "90"}, {DOMAIN: INT4})
PROVEN, OPEN, DOUBTFUL = "kept", "open", "unsure"


def look(type_: int = INT4, token: str | None = HERE, *, typmod: int = -1) -> KnownShape:
    return KnownShape(2, {1: ("id", type_, typmod), 2: ("a", TEXT, -1)}, token)


def state(
    xid: int, file: int, type_: int = INT8, *, plain: bool = True, version: int = 0, typmod: int = -1
) -> KnownShape:
    """Return a state of a table whose first column the transaction altered, unless its `version` is given."""
    columns = {1: ("id", type_, typmod), 2: ("a", TEXT, -1)}
    versions = {1: version or xid, 2: 90}
    return KnownShape(2, columns, HERE, xid=xid, versions=versions, file=file, plain=plain)


def history(*events: KnownShape, looks: tuple[KnownShape, ...] = (look(), look(INT8)), **more: object) -> History:
    return replace(History(looks, None, events), **more)


WIDER = state(100, 501)


def test_a_plain_command_that_makes_a_column_wider_has_kept_its_values() -> None:
    assert read_rewrites(history(WIDER), BEFORE, {1: "100"}) == PROVEN


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([replace(WIDER, plain=False)], id="not plain"),
        pytest.param([state(100, 501, TEXT)], id="another type"),
        pytest.param([state(100, 501, INT2)], id="narrower"),
        pytest.param([state(99, 499, TEXT), WIDER], id="by way of another type"),
        pytest.param([state(99, 499, INT4, plain=False), WIDER], id="another command before it"),
        pytest.param([WIDER, state(101, 502, plain=False)], id="another command after it"),
        pytest.param([WIDER, state(100, 502, plain=False)], id="another command of the same transaction"),
        pytest.param([WIDER, state(101, 501, version=90), state(102, 501, version=100)], id="a version comes again"),
        pytest.param([replace(WIDER, generation=OTHER)], id="another trigger"),
        pytest.param([replace(WIDER, columns={}, versions={}, count=0)], id="the column was not there"),
    ],
)
def test_what_may_have_changed_a_value_is_doubtful(events: list[KnownShape]) -> None:
    assert read_rewrites(history(*events), BEFORE, {1: str(events[-1].versions.get(1))}) == DOUBTFUL


@pytest.mark.parametrize(
    "known",
    [
        pytest.param(history(WIDER).within([WIDER], 1, complete=True), id="a message said that something is missing"),
        pytest.param(history(WIDER, complete=False), id="messages are kept from the stream"),
        pytest.param(history(WIDER, looks=(look(token=None), look(INT8))), id="was not there at the look before"),
        pytest.param(history(WIDER, looks=(look(), look(INT8, OTHER))), id="was made again"),
        pytest.param(history(WIDER, looks=(look(token=""), look(INT8, ""))), id="may miss commands"),
        pytest.param(history(WIDER, looks=(look(INT8),)), id="no look has seen it as it was"),
        pytest.param(
            history(WIDER, state(101, 501), looks=(look(), KnownShape(1, {}, HERE))), id="the looks contradict"
        ),
    ],
)
def test_where_a_command_may_have_been_missed_all_is_doubtful(known: History) -> None:
    assert read_rewrites(known, BEFORE, {1: "100"}) == DOUBTFUL


def test_looks_before_the_last_that_saw_the_column_as_it_was_count_for_nothing() -> None:
    looks = (look(token=None), look(), look(INT8))

    assert read_rewrites(history(WIDER, looks=looks), BEFORE, {1: "100"}) == PROVEN


def test_what_is_not_told_yet_is_waited_for() -> None:
    assert read_rewrites(history(), BEFORE, {1: "100"}) == OPEN
    assert read_rewrites(history(state(100, 501, INT4)), BEFORE, {1: "101"}) == OPEN


def test_a_later_window_goes_on_from_what_an_earlier_one_has_told() -> None:
    looks, checked = (look(INT8),), replace(BEFORE, checked=True)

    assert read_rewrites(history(before=WIDER, looks=looks), checked, {1: "100"}) == PROVEN
    assert read_rewrites(history(state(101, 502, TEXT), before=WIDER, looks=looks), checked, {1: "101"}) == DOUBTFUL
    other = state(101, 502, plain=False, version=100)
    assert read_rewrites(history(other, before=WIDER, looks=looks), checked, {1: "100"}) == PROVEN
    assert read_rewrites(history(WIDER, other), BEFORE, {1: "100"}) == PROVEN
    same = replace(other, xid=100)
    assert read_rewrites(history(same, before=WIDER, looks=looks), checked, {1: "100"}) == DOUBTFUL
    unseen = history(before=WIDER)
    assert read_rewrites(unseen, BEFORE, {1: "100"}) == DOUBTFUL, "told before the look that did not see it"
    assert read_rewrites(history(before=replace(WIDER, generation=OTHER)), BEFORE, {1: "100"}) == OPEN


def test_a_state_of_before_that_is_told_after_a_rewrite_contradicts_it_in_every_window() -> None:
    computed, before, now = (
        state(100, 501, plain=False),
        state(99, FILE, INT4, version=90),
        state(101, 501, version=100),
    )

    assert read_rewrites(history(computed, before), BEFORE, {1: "100"}) == DOUBTFUL
    assert (
        read_rewrites(history(before, before=computed, looks=(look(INT8),)), replace(BEFORE, checked=True), {1: "100"})
        == DOUBTFUL
    )
    assert read_rewrites(history(now, before=before), BEFORE, {1: "100"}) != DOUBTFUL
    assert read_rewrites(history(computed, before, now), BEFORE, {1: "100"}) == DOUBTFUL


def test_what_the_look_before_has_seen_already_counts_for_nothing() -> None:
    seen = state(90, FILE, INT4, plain=False)

    assert read_rewrites(history(seen, WIDER), BEFORE, {1: "100"}) == PROVEN
    assert (
        read_rewrites(history(replace(seen, columns={1: ("id", TEXT, -1)}), seen, WIDER), BEFORE, {1: "100"})
        != DOUBTFUL
    )


def test_commands_that_leave_the_file_alone_change_no_value() -> None:
    renamed = state(99, FILE, INT4, plain=False)

    assert read_rewrites(history(renamed, WIDER), BEFORE, {1: "100"}) == PROVEN


def test_a_rewrite_that_leaves_a_column_alone_keeps_it() -> None:
    other = state(99, 499, INT4, plain=False, version=90)

    assert read_rewrites(history(other, WIDER), BEFORE, {1: "100"}) == PROVEN


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ((INT2, -1), (INT4, -1), True),
        ((INT2, -1), (INT8, -1), True),
        ((1007, -1), (1016, -1), True),
        ((DOMAIN, -1), (INT8, -1), True),
        ((INT8, -1), (INT4, -1), False),
        ((VARCHAR, 9), (VARCHAR, 14), True),
        ((VARCHAR, 9), (TEXT, -1), True),
        ((VARCHAR, 14), (VARCHAR, 9), False),
        ((VARCHAR, -1), (VARCHAR, 9), False),
        ((TEXT, -1), (VARCHAR, 9), False),
        ((1042, 9), (TEXT, -1), False),
        ((1700, 655366), (1700, 917510), True),
        ((1700, 655366), (1700, 655367), False),
        ((1700, -1), (1700, 917510), False),
        ((1082, -1), (1114, -1), False),
        ((1114, -1), (1184, -1), False),
    ],
)
def test_only_casts_that_change_no_value_are_taken(
    before: tuple[int, int], after: tuple[int, int], *, kept: bool
) -> None:
    looks = (look(before[0], typmod=before[1]), look(after[0], typmod=after[1]))
    events = state(100, 501, after[0], typmod=after[1])

    found = read_rewrites(history(events, looks=looks), replace(BEFORE, types={**BEFORE.types, 1: before}), {1: "100"})

    assert found == (PROVEN if kept else DOUBTFUL)


COMMANDS = st.lists(
    st.tuples(
        st.sampled_from(["widen", "same", "using", "rename", "vacuum", "other using", "add", "text"]), st.booleans()
    ),
    max_size=6,
)


@given(COMMANDS, st.integers(0, 6), st.data())
def test_whatever_is_proven_kept_every_value(commands: list[tuple[str, bool]], seen: int, data: st.DataObject) -> None:
    """Commands run in transactions; the look before saw the first so many, the window brought all of them or fewer."""
    xid, file, version, type_, changed = 100, FILE, 90, INT2, False
    right, events, when = (FILE, INT2, 90, False), list[KnownShape](), list[bool]()
    for at, (what, again) in enumerate(commands):
        xid += not (again and at != seen)
        if what in ("widen", "using", "text", "same"):
            version = xid
            file += 1
            type_ = {"widen": INT4 if type_ == INT2 else INT8, "text": TEXT}.get(what, type_) if type_ != TEXT else TEXT
            changed |= what == "using" or type_ == TEXT
        elif what == "rename":
            version = xid
        else:
            file += 1
        if what != "vacuum":
            events.append(state(xid, file, type_, plain=what not in ("using", "other using"), version=version))
            when.append(at < seen)
        if at < seen:
            right = (file, type_, version, changed)
    before = replace(BEFORE, file=right[0], types={1: (right[1], -1)}, versions={1: str(right[2])})
    cut = data.draw(st.integers(0, len([each for each in when if each])), label="told by windows before")
    known = history(*events[cut:], looks=(look(right[1]), look(type_)), before=events[cut - 1] if cut else None)

    found = read_rewrites(known, before, {1: str(version)} if version != right[2] else {})

    if found == PROVEN:
        assert changed == right[3]


# --- the file of a partition: one plain rewrite, and nothing beside it -----------------------

FOUND = FileBefore(7, HERE, 100, 500, empty=False)
LEFT = KnownShape(1, {1: ("id", 20, -1)}, HERE, xid=100, file=501, written=(101, 4), plain=True)
OTHERS = KnownShape(1, {1: ("id", 20, -1)}, HERE, xid=99, file=500, written=(99, 2), plain=True)


def rewriting(left: KnownShape, found: FileBefore) -> KnownShape:
    return replace(left, rewrote=found)


def test_one_told_rewrite_says_who_wrote_the_rows() -> None:
    events = [OTHERS, rewriting(LEFT, FOUND), replace(LEFT, written=(101, 9))]

    assert rewrite_logged(500, 501, HERE, events) == events[1]


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([], id="nothing"),
        pytest.param([LEFT], id="not what it found"),
        pytest.param([rewriting(LEFT, replace(FOUND, file=499))], id="found another file"),
        pytest.param([rewriting(replace(LEFT, file=502), FOUND)], id="left another file"),
        pytest.param([rewriting(replace(LEFT, file=502), FOUND), LEFT], id="a later command of it has the file"),
        pytest.param(
            [rewriting(replace(LEFT, file=502), FOUND), rewriting(LEFT, replace(FOUND, file=502))],
            id="rewritten twice",
        ),
        pytest.param([], id="of another partition alone"),
        pytest.param([rewriting(LEFT, FOUND), rewriting(LEFT, FOUND)], id="told twice"),
        pytest.param([rewriting(replace(LEFT, xid=101), FOUND)], id="in another transaction"),
        pytest.param([rewriting(replace(LEFT, plain=False), FOUND)], id="not plain"),
        pytest.param([rewriting(LEFT, replace(FOUND, generation=OTHER))], id="found by another trigger"),
        pytest.param([rewriting(replace(LEFT, generation=OTHER), FOUND)], id="left by another trigger"),
    ],
)
def test_what_may_be_another_story_is_not_believed(events: list[KnownShape]) -> None:
    assert rewrite_logged(500, 501, HERE, events) is None


@pytest.mark.parametrize("token", [None, "", OTHER])
def test_a_trigger_that_may_have_missed_something_tells_nothing(token: str | None) -> None:
    assert rewrite_logged(500, 501, token, [rewriting(LEFT, FOUND)]) is None

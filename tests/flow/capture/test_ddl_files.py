"""Whether it is told how a partition came to its file: of one plain rewrite, and of nothing beside it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.contract.table_state import FileBefore, TableState
from penstock.shapes.ddl_files import RewrittenFile, rewritten_file, rewritten_files
from penstock.wire.columnar import DdlEvent

HERE, OTHER = "the trigger", "another trigger"
FOUND = FileBefore(7, HERE, 100, 500, empty=False)
LEFT = TableState(7, HERE, 1, {1: ("id", 20, -1)}, {}, 100, file=501, written=(101, 4), plain=True)
OTHERS = TableState(7, HERE, 1, {1: ("id", 20, -1)}, {}, 99, file=500, written=(99, 2), plain=True)


def test_one_told_rewrite_says_who_wrote_the_rows() -> None:
    events = [DdlEvent(OTHERS, 0), DdlEvent(LEFT, 0, FOUND), DdlEvent(replace(LEFT, written=(101, 9)), 0)]

    assert rewritten_file(500, 501, HERE, events) == RewrittenFile(xid=100, writer=101, command=4, empty=False)


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([], id="nothing"),
        pytest.param([DdlEvent(LEFT, 0)], id="not what it found"),
        pytest.param([DdlEvent(LEFT, 0, replace(FOUND, file=499))], id="found another file"),
        pytest.param([DdlEvent(replace(LEFT, file=502), 0, FOUND)], id="left another file"),
        pytest.param(
            [DdlEvent(replace(LEFT, file=502), 0, FOUND), DdlEvent(LEFT, 0)], id="a later command of it has the file"
        ),
        pytest.param(
            [DdlEvent(replace(LEFT, file=502), 0, FOUND), DdlEvent(LEFT, 0, replace(FOUND, file=502))],
            id="rewritten twice",
        ),
        pytest.param([DdlEvent(LEFT, 0, FOUND), DdlEvent(LEFT, 0, FOUND)], id="told twice"),
        pytest.param([DdlEvent(replace(LEFT, xid=101), 0, FOUND)], id="in another transaction"),
        pytest.param([DdlEvent(replace(LEFT, plain=False), 0, FOUND)], id="not plain"),
        pytest.param([DdlEvent(LEFT, 0, replace(FOUND, trigger=OTHER))], id="found by another trigger"),
        pytest.param([DdlEvent(replace(LEFT, trigger=OTHER), 0, FOUND)], id="left by another trigger"),
    ],
)
def test_what_may_be_another_story_is_not_believed(events: list[DdlEvent]) -> None:
    assert rewritten_file(500, 501, HERE, events) is None


@pytest.mark.parametrize("token", [None, "", OTHER])
def test_a_trigger_that_may_have_missed_something_tells_nothing(token: str | None) -> None:
    assert rewritten_file(500, 501, token, [DdlEvent(LEFT, 0, FOUND)]) is None


def test_all_partitions_with_a_new_file_have_to_be_told() -> None:
    events = {7: [DdlEvent(LEFT, 0, FOUND)]}

    assert (rewritten_files({7: 500, 8: 600}, {7: 501, 8: 600}, HERE, events) or {}).keys() == {7}
    assert rewritten_files({7: 500, 8: 600}, {7: 501, 8: 601}, HERE, events) is None

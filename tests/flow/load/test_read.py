"""Rows under a snapshot are read by one loop, which tries again by one rule."""

import ast
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from penstock.errors import PenstockError, SourceError
from penstock.flow.load.read import TRIES, retried

FLOW = Path(__file__).parents[3] / "plugins/penstock/flow"


class Rows:
    """Answer tries to read tables: each with the slugs that are left of it; an empty text is a table that was read."""

    def __init__(self, **answers: list[str]) -> None:
        self.answers, self.tries, self.done = answers, Counter[str](), set[str]()

    def waits(self, but: Collection[str]) -> bool:
        return bool(self.answers.keys() - self.done - set(but))

    def read(self, but: Collection[str]) -> Mapping[str, PenstockError]:
        failed = dict[str, PenstockError]()
        for name in self.answers.keys() - self.done - set(but):
            self.tries[name] += 1
            slug = self.answers[name].pop(0) if self.answers[name] else ""
            if slug:
                failed[name] = SourceError(slug, "x")
            else:
                self.done.add(name)
        return failed


@pytest.mark.parametrize(
    ("answers", "tries", "left"),
    [
        pytest.param({"a": [], "b": []}, {"a": 1, "b": 1}, {}, id="what is read at once is read once"),
        pytest.param(
            {"a": ["table-rewritten"], "b": []}, {"a": 2, "b": 1}, {}, id="what was rewritten is read again, alone"
        ),
        pytest.param({"a": ["source-auth"]}, {"a": 1}, {"a": "source-auth"}, id="what no snapshot heals is tried once"),
        pytest.param(
            {"a": ["table-joining"]}, {"a": 1}, {"a": "table-joining"}, id="what was waited for is tried once"
        ),
        pytest.param(
            {"a": ["source-auth"], "b": ["table-rewritten"]},
            {"a": 1, "b": 2},
            {"a": "source-auth"},
            id="what is given up is told when others are read",
        ),
        pytest.param(
            {"a": ["table-rewritten"] * 9},
            {"a": TRIES},
            {"a": "table-rewritten"},
            id="what never stands still is given up",
        ),
    ],
)
def test_a_read_is_tried_again_where_a_later_snapshot_may_be_read(
    answers: dict[str, list[str]], tries: dict[str, int], left: dict[str, str]
) -> None:
    rows = Rows(**answers)

    failed = retried(rows.waits, rows.read)

    assert (rows.tries, {name: error.slug for name, error in failed.items()}) == (tries, left)


def test_one_loop_reads_tables_again_and_everything_that_reads_asks_it() -> None:
    loops, callers = list[str](), set[str]()
    for path in sorted(FLOW.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.For) and "tries" in ast.unparse(node.iter).lower():
                loops.append(str(path.relative_to(FLOW)))
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("retried", "read_tables", "copy_tables"):
                callers.add(f"{path.relative_to(FLOW)}: {ast.unparse(node.func)}")

    assert loops == ["load/read.py"]
    assert callers == {
        "load/bootstrap.py: read_tables",
        "load/fetch.py: read_tables",
        "load/read.py: copy_tables",
        "load/read.py: retried",
        "load/run.py: read_tables",
        "load/run.py: retried",
        "verify/compare.py: retried",
    }

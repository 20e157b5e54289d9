"""Which partitioned tables may be followed by what is told of their rewrite: those of which it can be told at all."""

from dataclasses import replace

import pytest

from penstock.flow.schema.questions import ask_for_values
from penstock.lsn import Lsn
from penstock.shapes.plan import Plan
from penstock.shapes.source_table import Leaf, SourceColumn, SourceTable
from penstock.shapes.steps import Policy
from tests.shapes.tables import BIGINT, ID, INT, known_as, source_table

N = SourceColumn("n", 2, INT, version="700")
LEAF = Leaf(101, "public", "t_1", "r", "p", "d", ("id",), 200, 1, 8192, True, True)
BEFORE = source_table(kind="p", columns=(ID, N), leaves=(LEAF,), relfilenode=0)
NOW = replace(BEFORE, columns=(ID, replace(N, type=BIGINT, version="705")), leaves=(replace(LEAF, relfilenode=201),))
COMPUTED = replace(N, generated="s")


def opened(before: SourceTable, now: SourceTable) -> bool:
    policy = Policy(on_dropped_partition="follow")
    refusal = Plan(reason="rewritten")
    return ask_for_values(known_as(before), now, policy, frozenset(), refusal, here=Lsn(9)) is not None


def test_a_partitioned_table_with_a_wider_column_waits_for_what_is_told() -> None:
    assert opened(BEFORE, NOW)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        pytest.param(replace(BEFORE, leaves=(replace(LEAF, persistence="u"),)), NOW, id="was unlogged"),
        pytest.param(BEFORE, replace(NOW, leaves=(replace(NOW.leaves[0], persistence="u"),)), id="is unlogged"),
        pytest.param(BEFORE, replace(NOW, leaves=(*NOW.leaves, replace(LEAF, oid=102, kind="f"))), id="is foreign"),
        pytest.param(replace(BEFORE, leaves=(LEAF, replace(LEAF, oid=102))), NOW, id="is gone"),
        pytest.param(
            replace(BEFORE, columns=(ID, N, replace(COMPUTED, attnum=3))),
            replace(NOW, columns=(*NOW.columns, replace(COMPUTED, attnum=3))),
            id="has a column that each partition computes by itself",
        ),
    ],
)
def test_what_partitions_may_hide_is_not_left_to_what_is_told(before: SourceTable, now: SourceTable) -> None:
    assert not opened(before, now)

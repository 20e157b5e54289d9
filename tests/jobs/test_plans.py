"""Plans and results survive their JSON form."""

import json

import pytest

from penstock.contract.manifest import ChangeCounts
from penstock.jobs.copy_plan import CopyPlan, CopyRange
from penstock.jobs.merge_plan import FileRef, MergePlan, MergeResult, TablePlan, TableResult
from penstock.jobs.pointers import Pointer
from penstock.shapes.mirror_column import MirrorColumn
from penstock.values.pgtype import PgType

INT = PgType(23, -1, "pg_catalog", "int4", "b")
POSITIVE = PgType(99, -1, "public", "positive", "d", base=INT)
INTS = PgType(1007, -1, "pg_catalog", "_int4", "b", element=INT)


def plan() -> MergePlan:
    columns = (MirrorColumn("k", 1, POSITIVE, key=True), MirrorColumn("l", 3, INTS, missing_text="{1}"))
    files = (
        FileRef("file:///x", 3, 100, ("k",), counts=ChangeCounts(inserts=3), typed=(("k", "int"),)),
        FileRef("file:///y", 1, 90, ("k", "l"), counts=ChangeCounts(truncates=1)),
    )
    table = TablePlan(7, "public", "t", ("shop", "public", "t"), "d", columns, files, (), "1:2:", 1 << 62)
    return MergePlan("shop", "a1", "lake", "shop", 1, (1 << 63) + 5, (table,), skip_commit_lsns=(1 << 40,))


def test_a_merge_plan_reads_back_as_it_was_written() -> None:
    assert MergePlan.loads(plan().dumps()) == plan()


def test_a_copy_plan_reads_back_as_it_was_written() -> None:
    range_ = CopyRange(7, "public", "t", ("k", "l"), 0, None, "(k > 1)", "f/7-0.parquet", typed=(("k", "int"),))
    plan = CopyPlan("shop", "a1", "file:///z", "shop/copies/c", "00-1", 4, 1 << 20, (range_,))

    assert CopyPlan.loads(plan.dumps()) == plan


def test_a_plan_of_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match="version 1, got 2"):
        MergePlan.loads(json.dumps(json.loads(plan().dumps()) | {"version": 2}))


def test_a_merge_result_reads_back_as_it_was_written() -> None:
    pointer = Pointer("shop.public", "t", "old", "new")
    tables = (
        TableResult(7, ("shop", "public", "t"), pointer, 1 << 62, {"inserts": 1}, 0.5),
        TableResult(8, ("shop", "public", "u"), None, None, {}, 0.1, "divergence", "why"),
    )
    result = MergeResult("shop", "a1", 5, tables, pointer, 9, 1.5)

    assert MergeResult.loads(result.dumps()) == result

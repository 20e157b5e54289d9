"""Plans for Spark, and what it answers, survive their JSON."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from penstock.codec import JsonForm
from penstock.contract.manifest import ChangeCounts, FileRef
from penstock.jobs.driver import Orders
from penstock.jobs.maintenance_plan import (
    Figures,
    MaintenanceOrder,
    MaintenancePlan,
    MaintenanceResult,
    TableFolder,
    TableReport,
)
from penstock.jobs.plans import (
    ChangelogPlan,
    ChangelogResult,
    ChangelogTable,
    CopyPlan,
    CopyRange,
    MergePlan,
    MergeResult,
    Replaced,
    TablePlan,
    TableResult,
    TableSize,
)
from penstock.jobs.pointers import Fresh, Pointer, Rename
from penstock.lake.changelog import MissingTransaction
from penstock.lake.columns import LakeColumn
from penstock.shapes.mirror_column import MirrorColumn
from penstock.values.pgtype import PgType

INT = PgType(23, -1, "pg_catalog", "int4", "b")
POSITIVE = PgType(99, -1, "public", "positive", "d", base=INT)
INTS = PgType(1007, -1, "pg_catalog", "_int4", "b", element=INT)
COPIED = FileRef("file:///x", 3, 100, ("k",), counts=ChangeCounts(inserts=3), typed=(("k", "int"),))
CHANGES = FileRef(
    "file:///y", 1, 90, ("k", "l"), counts=ChangeCounts(truncates=1), fields=("k", None), key=(), reals=("k",)
)
BOUNDS = (("k", "int", "1", None, None),)
TABLE = TablePlan(
    7,
    "public",
    "t",
    ("shop", "public", "t"),
    "d",
    (MirrorColumn("k", 1, POSITIVE, key=True), MirrorColumn("l", 3, INTS, missing_text="{1}")),
    (COPIED, CHANGES),
    (),
    "1:2:",
    1 << 62,
)
MERGE = MergePlan(
    "shop", 1, (1 << 63) + 5, (TABLE,), skip_commit_lsns=(1 << 40,), pipeline="shop", attempt="a1", catalog="lake"
)
POINTER = Pointer(("shop.public", "t"), "old", "new")
MERGED = MergeResult(
    "shop",
    "a1",
    5,
    (
        TableResult(7, ("shop", "public", "t"), POINTER, 1 << 62, {"inserts": 1}, 0.5, size=TableSize(1, 2, 3)),
        TableResult(8, ("shop", "public", "u"), None, None, {}, 0.1, "divergence", "why"),
    ),
    POINTER,
    9,
    1.5,
)
FILL = ChangelogPlan(
    pipeline="shop",
    attempt="a",
    catalog="lake",
    from_time=datetime(2026, 11, 1, 2, tzinfo=timezone(timedelta(hours=2))),
    upto_time=datetime(2026, 11, 2, 0, 0, 0, 1, tzinfo=UTC),
    era=2,
    through_lsn=(1 << 64) - 1,
    tables=(
        ChangelogTable(
            1,
            ("shop", "t__changelog"),
            (LakeColumn("id", "int"), LakeColumn("a`b.c", "string")),
            (FileRef("file:///f", 1, 2, ("id",), era=1),),
            (MissingTransaction(1, 2, None, datetime(2026, 11, 1, tzinfo=UTC)),),
        ),
    ),
)
FILLED = ChangelogResult(
    "shop",
    "a",
    (
        TableResult(1, ("shop", "t"), Pointer(("shop", "t"), "old", "new"), 7, {"rows_written": 1}, 0.5),
        TableResult(2, ("shop", "u"), None, None, {}, 0.5, "foreign-commit", "whose?"),
    ),
    1.5,
)
RANGE = CopyRange(7, "public", "t", ("k", "l"), 0, None, "(k > 1)", "f/7-0.parquet", typed=(("k", "int"),))
COPY = CopyPlan("shop", "a1", "file:///z", "shop/copies/c", "00-1", 4, 1 << 20, (RANGE,))
MAINTAIN = MaintenancePlan(
    pipeline="shop",
    attempt="a",
    catalog="lake",
    planned_at=2,
    read_since=1,
    orphans_before=1,
    tables=(
        MaintenanceOrder(("shop", "public", "t"), 7, (5, 7), 16400),
        MaintenanceOrder(("shop", "x"), None, (), watched=False),
    ),
    old_tables=(TableFolder("shop._penstock_era1.public", "t", "file:///lake/t", listed=False),),
    folders=(TableFolder("shop.public", "t", "file:///lake/t"),),
    deleted_share=0.1,
    small_files=5,
    file_bytes=None,
    time_budget=60,
    parallel_tables=2,
)
FIGURES = Figures(9, 1000, 50, 3, 4, 20, 12)
LEFT = TableReport(("shop", "u"), None, None, None, None, 0.0, left="why")
DONE = TableReport(("shop", "t"), 1, 8, FIGURES, replace(FIGURES, files=1), 2.5, 9, 18, 2)


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(MERGE, id="a merge"),
        pytest.param(
            replace(
                MERGE,
                tables=(
                    replace(TABLE, removed=(BOUNDS,), replaced=(Replaced(7, (BOUNDS,), (COPIED,)),), fresh=("s", "f")),
                ),
                renames=(Rename(7, ("shop", "t"), ("shop", "u"), "changelog"),),
            ),
            id="a merge that replaces rows of partitions and renames",
        ),
        pytest.param(replace(MERGE, tables=(replace(TABLE, copy_files=(COPIED,)),)), id="a merge that loads a copy"),
        pytest.param(MERGED, id="what was merged"),
        pytest.param(
            replace(MERGED, cuts=replace(POINTER, fresh=Fresh(("s", "f"), "l", ("k", "o")))), id="a fresh table"
        ),
        pytest.param(COPY, id="a copy"),
        pytest.param(replace(COPY, ranges=(replace(RANGE, attnums=(1, 3), commit_lsn=1 << 63),)), id="a fetch"),
        pytest.param(FILL, id="a fill of changelogs"),
        pytest.param(FILLED, id="what was filled"),
        pytest.param(MAINTAIN, id="a maintenance"),
        pytest.param(MaintenanceResult("shop", "a", (DONE, LEFT), MAINTAIN.old_tables, 3.5), id="what was maintained"),
        pytest.param(DONE, id="a table that was maintained"),
        pytest.param(Orders(2, 1, "plan", "result"), id="an order"),
    ],
)
def test_what_is_written_reads_back_as_it_was(record: JsonForm) -> None:
    assert type(record).loads(record.dumps()) == record
    assert type(record).from_json(record.to_json()) == record


def test_a_text_that_is_no_such_plan_is_refused() -> None:
    with pytest.raises(ValueError, match="validation error"):
        MergePlan.loads(MERGED.dumps())

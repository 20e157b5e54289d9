"""Maintenance as plain data: plans and results survive their JSON, and what may be dropped is told by its name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.jobs.maintenance_plan import (
    Figures,
    MaintenanceOrder,
    MaintenancePlan,
    MaintenanceResult,
    OldTable,
    TableFolder,
    TableReport,
)
from penstock.jobs.pointers import aside, is_left_behind, place_of, rebuilt, replaced

PLAN = MaintenancePlan(
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
    old_tables=(OldTable("shop._penstock_era1.public", "t", "file:///lake/t", listed=False),),
    folders=(TableFolder("shop.public", "t", "file:///lake/t"),),
    deleted_share=0.1,
    small_files=5,
    file_bytes=None,
    time_budget=60,
    parallel_tables=2,
)
FIGURES = Figures(9, 1000, 50, 3, 4, 20, 12)


def test_a_plan_survives_its_json() -> None:
    assert MaintenancePlan.loads(PLAN.dumps()) == PLAN


def test_a_plan_of_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match="must have version 1, got 2"):
        MaintenancePlan.loads(replace(PLAN, version=2).dumps())


def test_a_result_survives_its_json() -> None:
    left = TableReport(("shop", "u"), None, None, None, None, 0.0, left="why")
    done = TableReport(("shop", "t"), 1, 8, FIGURES, replace(FIGURES, files=1), 2.5, 9, 18, 2)
    result = MaintenanceResult("shop", "a", (done, left), PLAN.old_tables, 3.5)

    assert MaintenanceResult.loads(result.dumps()) == result


@pytest.mark.parametrize(
    ("target", "left"),
    [
        (aside("shop", ("shop", "public", "t"), 1), True),
        (aside("shop", ("shop", "public", "t"), 2), False),
        (aside("shop", ("shop", "public", "t"), 10), False),
        (replaced("shop", ("shop", "public", "t"), "20261121t091500123_3f9a1c2d"), True),
        (rebuilt("shop", ("shop", "public", "t"), "given_up"), True),
        (rebuilt("shop", ("shop", "public", "t"), "open"), False),
        (aside("shop", ("t",), 1), True),
        (("shop", "public", "t"), False),
        (("shop", "_penstock_cuts"), False),
        (("shop2", "_penstock_era1", "t"), False),
        (("shop", "_penstock_eras", "t"), False),
        (("other", "shop", "_penstock_era1", "t"), False),
    ],
)
def test_tables_that_made_way_are_known_by_their_namespace(target: tuple[str, ...], left: bool) -> None:
    assert is_left_behind("shop", place_of(target)[0], 2, {"open"}) is left

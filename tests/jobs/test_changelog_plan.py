"""Changelog plans survive JSON; a changelog's fields keep their types where Iceberg cannot widen them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from penstock.jobs.changelog_plan import (
    ChangelogFile,
    ChangelogPlan,
    ChangelogResult,
    ChangelogTable,
    ChangelogTableResult,
)
from penstock.jobs.pointers import Pointer
from penstock.lake import changelog
from penstock.lake.columns import LakeColumn

FIELDS = (LakeColumn("id", "int"), LakeColumn("a`b.c", "string"))
PLAN = ChangelogPlan(
    pipeline="shop",
    attempt="a",
    catalog="lake",
    from_time=datetime(2026, 11, 1, 2, tzinfo=timezone(timedelta(hours=2))),
    upto_time=datetime(2026, 11, 2, 0, 0, 0, 1, tzinfo=UTC),
    era=2,
    through_lsn=(1 << 64) - 1,
    tables=(ChangelogTable(("shop", "t__changelog"), FIELDS, (ChangelogFile("file:///f", 1, 2, ("id",), 1),)),),
)


def test_a_plan_and_a_result_survive_json() -> None:
    result = ChangelogResult(
        "shop",
        "a",
        (
            ChangelogTableResult(("shop", "t"), Pointer("shop", "t", "old", "new"), 7, 1, 2, 0.5),
            ChangelogTableResult(("shop", "u"), None, None, 0, 0, 0.5, "foreign-commit", "whose?"),
        ),
        1.5,
    )

    assert ChangelogPlan.loads(PLAN.dumps()) == PLAN
    assert ChangelogResult.loads(result.dumps()) == result


def test_a_plan_of_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match="version 1, got 2"):
        ChangelogPlan.loads(PLAN.dumps().replace('"version": 1', '"version": 2'))


def test_a_changelog_keeps_the_types_of_its_fields_and_takes_new_ones_at_the_end() -> None:
    present = (LakeColumn("id", "int"), LakeColumn("gone", "date"))
    wanted = (LakeColumn("new", "bigint"), LakeColumn("id", "string"))

    assert changelog.united(present, wanted) == (*present, LakeColumn("new", "bigint"))


@pytest.mark.parametrize(
    ("old", "new", "wider"),
    [
        ("int", "bigint", True),
        ("bigint", "int", False),
        ("float", "double", True),
        ("int", "string", False),
        ("decimal(9,2)", "decimal(12,2)", True),
        ("decimal(9,2)", "decimal(12,3)", False),
        ("decimal(9,2)", "decimal(8,2)", False),
        ("array<int>", "array<bigint>", True),
        ("array<int>", "bigint", False),
    ],
)
def test_a_field_becomes_wider_where_iceberg_can_widen_it_in_place(old: str, new: str, wider: bool) -> None:
    present, wanted = (LakeColumn("n", old),), (LakeColumn("n", new),)

    assert changelog.united(present, wanted) == (wanted if wider else present)


def test_names_are_quoted_wherever_they_stand() -> None:
    columns = {column.name: column.type for column in changelog.changelog_columns(FIELDS)}

    assert columns["new"] == columns["old"] == "struct<`id`: int, `a``b.c`: string>"

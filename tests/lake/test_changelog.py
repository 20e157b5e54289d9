"""A changelog's fields keep their types where Iceberg cannot widen them."""

import pytest

from penstock.lake import changelog
from penstock.lake.columns import LakeColumn

FIELDS = (LakeColumn("id", "int"), LakeColumn("a`b.c", "string"))


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

"""The source's columns against the lake's: new ones are added, anything else is a reason to pause."""

import pytest

from penstock.errors import LakeError
from penstock.lake.columns import MISFITS, LakeColumn, additions, mirror_columns
from penstock.lake.mirror_column import MirrorColumn
from penstock.values.pgtype import PgType


def column(name: str, type_name: str = "text", *, key: bool = False) -> MirrorColumn:
    return MirrorColumn(name, 1, PgType(0, -1, "pg_catalog", type_name, "b"), key)


KEY, NOTE = column("id", "int8", key=True), column("note")
PRESENT = (LakeColumn("id", "bigint"), LakeColumn("note", "string"), MISFITS)


def test_a_mirror_has_the_source_columns_in_order_and_the_misfits_last() -> None:
    assert mirror_columns((KEY, NOTE)) == PRESENT


def test_equal_columns_need_no_addition_in_whatever_order() -> None:
    assert additions((NOTE, KEY), PRESENT) == ()


def test_new_columns_are_additions_wherever_they_stand() -> None:
    before, after = column("before"), column("Note", "date")

    assert additions((before, KEY, NOTE, after), PRESENT) == (before, after)


@pytest.mark.parametrize(
    ("columns", "present", "told"),
    [
        ((KEY,), PRESENT, "note is in the lake but not in the source"),
        ((KEY, column("note", "int4")), PRESENT, "note has type string in the lake and maps to int now"),
        ((KEY, NOTE, column("k", key=True)), PRESENT, "k is new and part of the key"),
        ((KEY, NOTE), PRESENT[:-1], "_misfits is missing in the lake"),
        ((KEY, NOTE), (*PRESENT[:-1], LakeColumn("_misfits", "string")), "_misfits has type string"),
        ((KEY, NOTE, column("_misfits")), PRESENT, "no source column named _misfits"),
    ],
)
def test_any_other_difference_is_a_schema_change_that_is_named(
    columns: tuple[MirrorColumn, ...], present: tuple[LakeColumn, ...], told: str
) -> None:
    with pytest.raises(LakeError, match="schema-change") as refused:
        additions(columns, present)

    assert told in refused.value.message


@pytest.mark.parametrize(
    ("type_name", "fits"),
    [
        ("int8", True),
        ("text", True),
        ("bytea", True),
        ("float8", True),
        ("date", False),
        ("timestamptz", False),
        ("numeric", True),
    ],
)
def test_only_a_key_whose_every_value_fits_is_matched_plainly(type_name: str, fits: bool) -> None:
    assert mirror_columns((column("k", type_name, key=True),))[0].always_fits is fits

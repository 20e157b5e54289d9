"""How a lake table gets the source's columns: by numbers, and by metadata alone."""

from dataclasses import replace

import pytest

from penstock.errors import LakeError
from penstock.lake.columns import DROPPED_NOTE, MISFITS_TYPE, Evolution, LakeField, evolution, numbers_of, numbers_text
from penstock.shapes.mirror_column import MirrorColumn
from penstock.values.pgtype import PgType


def column(name: str, attnum: int, type_name: str = "text", *, key: bool = False, typmod: int = -1) -> MirrorColumn:
    return MirrorColumn(name, attnum, PgType(0, typmod, "pg_catalog", type_name, "b"), key)


def numeric(name: str, attnum: int, precision: int, scale: int) -> MirrorColumn:
    return column(name, attnum, "numeric", typmod=(precision << 16 | scale) + 4)


ID, NOTE = column("id", 1, "int8", key=True), column("note", 2)
FIELDS = (LakeField(1, "id", "bigint"), LakeField(2, "note", "string"), LakeField(3, "_misfits", MISFITS_TYPE))
NUMBERS = {1: (1, 0), 2: (2, 0)}


def test_equal_columns_need_nothing_in_whatever_order_and_with_or_without_numbers() -> None:
    assert not evolution((NOTE, ID), FIELDS, None)
    assert not evolution((NOTE, ID), FIELDS, NUMBERS)


def test_new_columns_are_added_wherever_they_stand() -> None:
    before, after = column("before", 3), column("Note", 4, "date")

    assert evolution((before, ID, NOTE, after), FIELDS, NUMBERS) == Evolution(added=(before, after))
    assert evolution((before, ID, NOTE, after), FIELDS, None) == Evolution(added=(before, after))


def test_a_column_of_another_name_is_renamed_and_two_may_swap() -> None:
    text = replace(NOTE, name="text")
    other = LakeField(4, "other", "string")
    swapped = (ID, replace(NOTE, name="other"), column("note", 3))

    assert evolution((ID, text), FIELDS, NUMBERS) == Evolution(renamed=(("note", "text"),))
    assert evolution(swapped, (*FIELDS, other), {**NUMBERS, 4: (3, 0)}).renamed == (
        ("note", "other"),
        ("other", "note"),
    )


def test_a_dropped_column_goes_or_stays_with_a_comment() -> None:
    kept = replace(NOTE, dropped=True)
    noted = (FIELDS[0], replace(FIELDS[1], doc=DROPPED_NOTE), FIELDS[2])

    assert evolution((ID,), FIELDS, NUMBERS) == Evolution(deleted=("note",))
    assert evolution((ID, kept), FIELDS, NUMBERS) == Evolution(noted=("note",))
    assert not evolution((ID, kept), noted, NUMBERS)


def test_a_new_column_under_the_name_of_a_dropped_one_is_another_field() -> None:
    new = column("note", 3, "int4")

    assert evolution((ID, new), FIELDS, NUMBERS) == Evolution(deleted=("note",), added=(new,))
    kept = replace(NOTE, name="note__dropped_2", dropped=True)
    assert evolution((ID, kept, new), FIELDS, NUMBERS) == Evolution(
        renamed=(("note", "note__dropped_2"),), added=(new,), noted=("note__dropped_2",)
    )


def test_a_wider_decimal_is_widened_under_its_new_name() -> None:
    fields = (FIELDS[0], LakeField(2, "price", "decimal(10,2)"), FIELDS[2])

    assert evolution((ID, numeric("cost", 2, 14, 2)), fields, NUMBERS) == Evolution(
        renamed=(("price", "cost"),), widened=(("cost", "decimal(14,2)"),)
    )


@pytest.mark.parametrize(
    ("columns", "fields", "numbers", "reason"),
    [
        ((ID,), FIELDS, None, "note is in the lake but not in the source"),
        ((ID, NOTE), (*FIELDS, LakeField(9, "mine", "int")), NUMBERS, "mine is in the lake but not in the source"),
        ((ID, column("note", 2, "int4")), FIELDS, NUMBERS, "note has type string in the lake and maps to int now"),
        (
            (ID, numeric("note", 2, 8, 3)),
            (FIELDS[0], LakeField(2, "note", "decimal(10,2)"), FIELDS[2]),
            NUMBERS,
            "note has",
        ),
        ((ID, NOTE), FIELDS[:-1], NUMBERS, "_misfits is missing in the lake"),
        ((ID, NOTE, column("_misfits", 3)), FIELDS, NUMBERS, "no source column named _misfits"),
    ],
)
def test_any_other_difference_is_a_schema_change_that_is_named(
    columns: tuple[MirrorColumn, ...], fields: tuple[LakeField, ...], numbers: dict[int, int] | None, reason: str
) -> None:
    with pytest.raises(LakeError, match="schema-change") as refused:
        evolution(columns, fields, numbers)

    assert reason in refused.value.message


def test_numbers_go_through_the_tables_property() -> None:
    assert numbers_of(numbers_text((ID, NOTE), {"id": 1, "note": 7})) == {1: (1, 0), 7: (2, 0)}
    assert numbers_of(None) is None

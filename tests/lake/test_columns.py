"""The columns of a mirror."""

import pytest

from penstock.errors import LakeError
from penstock.lake.columns import MISFITS, LakeColumn, columns_stamp, mirror_columns
from penstock.shapes.mirror_column import MirrorColumn
from penstock.values.pgtype import PgType


def column(name: str, type_name: str = "text", *, key: bool = False, attnum: int = 1) -> MirrorColumn:
    return MirrorColumn(name, attnum, PgType(0, -1, "pg_catalog", type_name, "b"), key)


def test_a_mirror_has_the_source_columns_in_order_and_the_misfits_last() -> None:
    columns = (column("id", "int8", key=True), column("note"))

    assert mirror_columns(columns) == (LakeColumn("id", "bigint"), LakeColumn("note", "string"), MISFITS)


def test_a_name_that_the_lake_keeps_for_itself_is_refused() -> None:
    with pytest.raises(LakeError, match="no source column named _misfits"):
        mirror_columns((column("_misfits"),))


def test_columns_of_another_name_number_or_lake_type_have_another_stamp() -> None:
    stamps = {
        columns_stamp(columns)
        for columns in (
            [column("a")],
            [column("b")],
            [column("a", attnum=2)],
            [column("a", "int4")],
            [column("a"), column("b", attnum=2)],
            [MirrorColumn("a", 1, column("a").type, dropped=True)],
        )
    }

    assert len(stamps) == 6
    assert columns_stamp([column("a", "varchar")]) == columns_stamp([column("a")]), "the lake's column is the same"


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

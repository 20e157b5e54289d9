"""The verdict over a table's catalog: follow an added column, pause on everything the stream does not carry."""

from dataclasses import replace

import pytest

from penstock.flow.drift import Verdict, column_plan, reshaped, verdict
from penstock.ledger.records import TableRecord
from penstock.lsn import Lsn
from penstock.source.tables import Leaf, SourceColumn, SourceTable
from penstock.values.pgtype import PgType
from penstock.wire.messages import Relation, RelationColumn

INT = PgType(23, -1, "pg_catalog", "int4", "b")
TEXT = PgType(25, -1, "pg_catalog", "text", "b")
ID = SourceColumn("id", 1, INT, not_null=True, key=True)
NAME = SourceColumn("name", 2, TEXT)
HEAP = Leaf(100, "public", "t", "r", "p", "d", ("id",), 200, 1, 8192, True, True)
TABLE = SourceTable(
    oid=100,
    schema="public",
    name="t",
    kind="r",
    persistence="p",
    identity="d",
    key=("id",),
    columns=(ID, NAME),
    hidden=(),
    leaves=(HEAP,),
    row_filter=None,
    relfilenode=200,
    parents=(),
    enums={900: ("low", "high")},
    composites={},
)


def judge(now: SourceTable | None, before: SourceTable = TABLE) -> Verdict:
    return verdict(tuple(map(column_plan, before.columns)), before.identity, before.digest(), now)


def test_an_unchanged_table_is_left_alone() -> None:
    assert judge(TABLE) == Verdict()


def test_an_added_column_is_followed_with_the_value_that_old_rows_show() -> None:
    added = SourceColumn("state", 3, TEXT, missing_text="new", has_default=True)

    found = judge(replace(TABLE, columns=(ID, NAME, added)))

    assert found.reason is None
    assert [(column.name, column.missing_text) for column in found.added] == [("state", "new")]


def test_a_column_added_without_a_default_is_followed() -> None:
    assert judge(replace(TABLE, columns=(ID, NAME, SourceColumn("state", 3, TEXT)))).reason is None


def test_a_new_heap_alone_is_no_change_because_vacuum_full_and_truncate_make_one_too() -> None:
    assert judge(replace(TABLE, relfilenode=201, leaves=(replace(HEAP, relfilenode=201),))) == Verdict()


def test_a_label_added_to_an_enum_is_no_change() -> None:
    assert judge(replace(TABLE, enums={900: ("low", "middle", "high")})) == Verdict()


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        (None, "dropped, or left the publication"),
        (replace(TABLE, columns=(ID,)), "column name was dropped"),
        (replace(TABLE, columns=(ID, replace(NAME, name="title"))), "renamed to title"),
        (replace(TABLE, columns=(ID, replace(NAME, type=INT))), "changed its type from text to int4"),
        (replace(TABLE, columns=(ID, replace(NAME, type=replace(TEXT, typmod=44)))), "changed its type"),
        (replace(TABLE, columns=(ID, replace(NAME, attnum=3))), "column name was dropped"),
        (replace(TABLE, identity="f"), "replica identity changed"),
        (replace(TABLE, columns=(ID, replace(NAME, key=True))), "replica identity changed"),
        (replace(TABLE, enums={900: ("low", "top")}), "label of an enum was renamed"),
        (replace(TABLE, row_filter="id > 5"), "row filter changed"),
        (
            replace(TABLE, relfilenode=201, columns=(ID, NAME, SourceColumn("at", 3, TEXT, has_default=True))),
            "written into every row",
        ),
    ],
)
def test_what_the_stream_does_not_carry_gives_a_reason_to_pause(now: SourceTable | None, reason: str) -> None:
    assert reason in (judge(now).reason or "")


PARTITIONED = replace(TABLE, kind="p")


def test_a_partition_created_in_place_is_no_change() -> None:
    born = replace(HEAP, oid=101, name="t_2", relfilenode=300)

    assert judge(replace(PARTITIONED, leaves=(HEAP, born)), PARTITIONED) == Verdict()


def test_a_partition_attached_with_rows_and_one_that_left_with_rows_pause() -> None:
    attached = replace(HEAP, oid=101, name="t_2", relfilenode=300, born_attached=False)

    assert "attached" in (judge(replace(PARTITIONED, leaves=(HEAP, attached)), PARTITIONED).reason or "")
    assert "detached" in (judge(replace(PARTITIONED, leaves=()), PARTITIONED).reason or "")


def record(*columns: SourceColumn) -> TableRecord:
    return TableRecord(
        pipeline="shop",
        oid=100,
        schema="public",
        name="t",
        target=("shop", "public", "t"),
        shape="mirror",
        state="ready",
        identity="d",
        columns=tuple(map(column_plan, columns)),
        catalog_digest={},
        copy_id=None,
        complete_through=Lsn(1),
        snapshot_id=None,
        paused_slug=None,
        paused_reason=None,
        paused_from_state=None,
    )


def relation(*columns: tuple[str, int, int]) -> Relation:
    return Relation(100, "public", "t", "d", tuple(RelationColumn(*column, False) for column in columns))


def test_landed_rows_of_the_tables_shape_or_of_an_older_one_belong_to_it() -> None:
    assert reshaped(record(ID, NAME), relation(("id", 23, -1), ("name", 25, -1))) is None
    assert reshaped(record(ID, NAME), relation(("id", 23, -1))) is None


def test_landed_rows_with_another_type_or_an_unknown_column_pause_the_table() -> None:
    assert "changed its type" in (reshaped(record(ID, NAME), relation(("id", 20, -1))) or "")
    assert "no longer has" in (reshaped(record(ID, NAME), relation(("id", 23, -1), ("gone", 25, -1))) or "")

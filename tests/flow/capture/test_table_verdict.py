"""The verdict over a table's catalog: follow an added column, pause on everything the stream does not carry."""

import json
from dataclasses import replace

import pytest

from penstock.shapes.accepted import Accepted
from penstock.shapes.column_changes import ADDED_ONLY, Following
from penstock.shapes.column_fetch import Fetch
from penstock.shapes.new_files import suspects
from penstock.shapes.source_table import Attach, Leaf, SourceColumn, SourceTable
from penstock.shapes.table_facts import column_plan
from penstock.shapes.table_verdict import Verdict, verdict
from penstock.values.pgtype import PgType
from tests.shapes.tables import HEAP, ID, INT, TEXT, planned, source_table

NAME = SourceColumn("name", 2, TEXT, version="700")
GIVEN = SourceColumn("given", 3, TEXT, version="705")
TABLE = source_table(
    columns=(ID, NAME),
    hidden=("given",),
    enums={900: ("low", "high")},
    membership=("table 1",),
    hidden_attnums=(3,),
    part_versions={900: ("1 700", "2 700")},
    part_names={900: "level"},
)

NEWER = replace(HEAP, relfilenode=201)
REWRITTEN = replace(TABLE, leaves=(NEWER,), columns=(ID, replace(NAME, version="705")))


def judge(now: SourceTable | None, before: SourceTable = TABLE, following: Following = ADDED_ONLY) -> Verdict:
    return verdict(planned(before), before.identity, Accepted(before.shape), now, following=following)


def unchanged(found: Verdict, before: SourceTable = TABLE) -> bool:
    return found == Verdict(tuple(map(column_plan, before.columns)), before.identity)


def test_an_unchanged_table_is_left_alone() -> None:
    assert unchanged(judge(TABLE))


def test_an_added_column_is_followed_with_the_value_that_old_rows_show() -> None:
    added = SourceColumn("state", 4, TEXT, missing_text="new", has_default=True)

    found = judge(replace(TABLE, columns=(ID, NAME, added)))

    assert found.reason is None
    assert [(column.name, column.missing_text) for column in found.columns[2:]] == [("state", "new")]
    assert [change.rule for change in found.changes] == ["add-column"]


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (PgType(1007, -1, "pg_catalog", "_int4", "b", element=INT), "{1,2}"),
        (PgType(70001, -1, "public", "hstore", "b"), '"k"=>"v"'),
        (PgType(701, -1, "pg_catalog", "float8", "b"), "NaN"),
        (PgType(1082, -1, "pg_catalog", "date", "b"), "infinity"),
    ],
)
def test_a_column_added_with_a_default_that_the_lake_has_no_form_of_is_fetched(type_: PgType, text: str) -> None:
    added = SourceColumn("marks", 4, type_, missing_text=text, has_default=True)
    now = replace(TABLE, columns=(ID, NAME, added))

    found = judge(now, following=Following())

    assert found.fetch == Fetch(frozenset({4}))
    assert "column marks was added with a constant default that the lake's column cannot have" in (found.reason or "")
    assert text not in (found.reason or ""), "no value is shown"
    assert judge(now).reason == found.reason, "a table that is being copied is copied again"


def test_a_column_added_without_a_default_is_followed() -> None:
    assert judge(replace(TABLE, columns=(ID, NAME, SourceColumn("state", 4, TEXT)))).reason is None


def test_a_new_heap_alone_is_no_change_because_vacuum_full_and_truncate_make_one_too() -> None:
    assert unchanged(judge(replace(TABLE, relfilenode=201, leaves=(replace(HEAP, relfilenode=201),))))


def test_a_label_added_to_an_enum_is_no_change() -> None:
    more = replace(TABLE, enums={900: ("low", "middle", "high")}, part_versions={900: ("1 700", "3 705", "2 700")})

    assert unchanged(judge(more))


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        (None, "dropped, or left the publication"),
        (replace(TABLE, columns=(ID,)), "column name was dropped"),
        (replace(TABLE, columns=(ID, replace(NAME, name="title"))), "renamed to title"),
        (replace(TABLE, columns=(ID, replace(NAME, type=INT))), "changed its type from text to integer"),
        (replace(TABLE, columns=(ID, replace(NAME, type=replace(TEXT, typmod=44)))), "changed its type"),
        (replace(TABLE, columns=(ID, replace(NAME, attnum=3))), "column name was dropped"),
        (replace(TABLE, identity="f"), "replica identity changed"),
        (replace(TABLE, columns=(ID, replace(NAME, key=True))), "replica identity changed"),
        (replace(TABLE, enums={900: ("low", "top")}), "label of enum level was renamed"),
        (
            replace(TABLE, part_versions={900: ("1 700", "2 705")}),
            "label of enum level was renamed or moved, perhaps back",
        ),
        (replace(TABLE, schema="other"), "renamed from public.t to other.t"),
        (REWRITTEN, "column name was altered and the table rewritten"),
        (replace(TABLE, columns=(ID, NAME, replace(GIVEN, name="g2"))), "was generated or not published"),
        (
            replace(TABLE, leaves=(NEWER,), columns=(ID, NAME, SourceColumn("at", 4, TEXT))),
            "added and the table rewritten",
        ),
        (replace(TABLE, filter_digest="a1"), "row filter changed"),
    ],
)
def test_what_the_stream_does_not_carry_gives_a_reason_to_pause(now: SourceTable | None, reason: str) -> None:
    assert reason in (judge(now).reason or "")


PARTITIONED = replace(TABLE, kind="p")


def test_a_partition_created_in_place_is_no_change() -> None:
    born = replace(HEAP, oid=101, name="t_2", relfilenode=101)  # a table's first file bears its oid
    emptied = replace(born, relfilenode=300)

    assert unchanged(judge(replace(PARTITIONED, leaves=(HEAP, born)), PARTITIONED))
    assert "new file" in (judge(replace(PARTITIONED, leaves=(HEAP, emptied)), PARTITIONED).reason or "")


def test_a_partition_attached_with_rows_and_one_that_left_with_rows_pause() -> None:
    attached = replace(
        HEAP, oid=101, name="t_2", relfilenode=101, chain=("101 100 705",), attached=(Attach("101 100 705", 705, 0),)
    )

    assert "attached" in (judge(replace(PARTITIONED, leaves=(HEAP, attached)), PARTITIONED).reason or "")
    assert "detached" in (judge(replace(PARTITIONED, leaves=()), PARTITIONED).reason or "")


VARCHAR = PgType(1043, 24, "pg_catalog", "varchar", "b")
TO_50 = replace(VARCHAR, typmod=54)
SHORT = replace(TABLE, columns=(ID, replace(NAME, type=VARCHAR)))


@pytest.mark.parametrize(
    ("now", "before", "names", "rule"),
    [
        (replace(TABLE, columns=(ID, replace(NAME, name="title"))), TABLE, ["id", "title"], "rename-column"),
        (replace(TABLE, columns=(ID,)), TABLE, ["id", "name"], "drop-column"),
        (replace(SHORT, columns=(ID, replace(NAME, type=TO_50))), SHORT, ["id", "name"], "retype-column"),
        (replace(SHORT, columns=(ID, NAME)), SHORT, ["id", "name"], "retype-column"),
        (
            replace(TABLE, columns=(ID, replace(NAME, attnum=4))),
            TABLE,
            ["id", "name__dropped_2", "name"],
            "drop-column",
        ),
    ],
)
def test_a_change_of_columns_that_rewrites_nothing_is_followed(
    now: SourceTable, before: SourceTable, names: list[str], rule: str
) -> None:
    found = judge(now, before, Following())

    assert found.reason is None
    assert [column.name for column in found.columns] == names
    assert found.changes[0].rule == rule


def test_another_replica_identity_with_the_same_key_is_followed() -> None:
    full = replace(TABLE, identity="f")

    assert judge(full, TABLE, Following()).identity == "f"
    assert judge(TABLE, full, Following()).reason is None


BY_NAME = replace(TABLE, identity="i", columns=(replace(ID, key=False), replace(NAME, key=True)), key=("name",))
WITHOUT_KEY = replace(TABLE, columns=(replace(ID, key=False), NAME), key=())


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        (TABLE, BY_NAME, "the key is (name) now, it was (id)"),
        (TABLE, replace(WITHOUT_KEY, identity="f"), "the key is the whole row now, it was (id)"),
        (replace(WITHOUT_KEY, identity="f"), TABLE, "the key is (id) now, it was the whole row"),
        (TABLE, replace(WITHOUT_KEY, identity="n"), "the key is none, for inserts only now, it was (id)"),
        (
            replace(WITHOUT_KEY, identity="n"),
            replace(WITHOUT_KEY, identity="f"),
            "the key is the whole row now, it was none, for inserts only",
        ),
        (
            TABLE,
            replace(WITHOUT_KEY, columns=(NAME,), identity="n"),
            "the key is none, for inserts only now, it was (id)",
        ),
    ],
    ids=["another", "to whole rows", "from whole rows", "to none", "from none to whole rows", "dropped"],
)
def test_another_key_is_followed(before: SourceTable, now: SourceTable, told: str) -> None:
    found = judge(now, before, Following())

    assert found.reason is None
    assert [each.text for each in found.changes if each.rule in ("change-key", "drop-key")] == [told]
    assert {column.attnum for column in found.columns if column.key} == {
        column.attnum for column in now.columns if column.key
    }


@pytest.mark.parametrize(
    ("before", "now", "following"),
    [
        (TABLE, BY_NAME, ADDED_ONLY),
        (replace(TABLE, kind="p"), replace(BY_NAME, kind="p"), Following()),
        (TABLE, replace(BY_NAME, leaves=(NEWER,), columns=(ID, replace(NAME, key=True, version="705"))), Following()),
    ],
    ids=["not wanted", "of partitions", "of a table whose values are fetched"],
)
def test_another_key_is_a_reason_to_pause_where_rows_might_be_missed(
    before: SourceTable, now: SourceTable, following: Following
) -> None:
    found = judge(now, before, following)

    assert "the replica identity changed" in (found.reason or "")
    assert found.fetch is None


def test_whole_rows_tell_nothing_apart_where_the_lake_keeps_a_dropped_column() -> None:
    known = tuple(map(column_plan, TABLE.columns))
    kept = (*known, replace(known[1], name="old", attnum=4, dropped=True))
    found = verdict(kept, "d", Accepted(TABLE.shape), replace(WITHOUT_KEY, identity="f"), following=Following())

    assert "column old was dropped, and without a key" in (found.reason or "")


def test_a_dropped_column_goes_where_the_operator_wants_that() -> None:
    gone = Following(keep_dropped=False)

    assert [each.name for each in judge(replace(TABLE, columns=(ID,)), TABLE, gone).columns] == ["id"]
    no_key = replace(TABLE, columns=(NAME,), key=(), identity="n")
    assert "id was dropped, and older changes find their rows by it" in (judge(no_key, TABLE, gone).reason or "")


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        (replace(TABLE, columns=(ID, replace(NAME, type=INT))), "changed its type from text to integer"),
        (replace(TABLE, columns=(ID,), hidden_attnums=(2, 3)), "is not in the stream any more"),
        (REWRITTEN, "column name was altered and the table rewritten"),
        (
            replace(REWRITTEN, columns=(ID, replace(NAME, type=VARCHAR, version="705"))),
            "column name was altered and the table rewritten",
        ),
        (
            replace(TABLE, identity="f", key=(), columns=(replace(ID, key=False),)),
            "column name was dropped, and without a key",
        ),
    ],
)
def test_what_metadata_cannot_bring_is_a_reason_to_pause(now: SourceTable, reason: str) -> None:
    assert reason in (judge(now, following=Following()).reason or "")


def look(now: SourceTable, before: SourceTable, cleared: tuple[int, ...] = ()) -> str:
    accepted = Accepted.from_json(json.loads(json.dumps(Accepted(before.shape).to_json())))
    return verdict(planned(before), before.identity, accepted, now, cleared).reason or ""


def test_rows_that_were_kept_clear_an_altered_column_but_not_an_added_one() -> None:
    added = replace(REWRITTEN, columns=(ID, NAME, SourceColumn("state", 4, TEXT)))

    assert look(REWRITTEN, TABLE, cleared=(HEAP.oid,)) == ""
    assert "column state was added" in look(added, TABLE, cleared=(HEAP.oid,))


def test_a_type_that_is_only_renamed_is_the_same() -> None:
    assert look(replace(TABLE, columns=(ID, replace(NAME, type=replace(TEXT, name="words")))), TABLE) == ""


def test_the_rows_of_a_partition_with_a_new_file_or_of_one_that_was_attached_decide() -> None:
    attach = Attach("101 100 705", 705, 3)
    attached = replace(HEAP, oid=101, name="t_2", relfilenode=101, chain=(attach.version,), attached=(attach,))
    more, truncated = replace(PARTITIONED, leaves=(HEAP, attached)), replace(PARTITIONED, leaves=(NEWER,))
    columns = tuple(map(column_plan, PARTITIONED.columns))

    assert suspects(columns, PARTITIONED.shape, more).arrived == ((attached, (attach,)),)
    assert suspects(columns, PARTITIONED.shape, truncated).files == (NEWER,)
    assert suspects(columns, TABLE.shape, replace(TABLE, leaves=(NEWER,))).files == ()
    assert look(more, PARTITIONED, cleared=(101,)) == look(truncated, PARTITIONED, cleared=(100,)) == ""
    assert "new file" in look(truncated, PARTITIONED)


def test_a_partition_created_below_one_that_was_attached_long_ago_is_no_suspect() -> None:
    attach = Attach("101 100 705", 705, 3)
    old = replace(HEAP, oid=102, chain=(attach.version, "102 101 706"), attached=(attach,))
    new = replace(HEAP, oid=103, chain=(attach.version, "103 101 707"), attached=(attach,))
    before = replace(PARTITIONED, leaves=(old,))

    assert look(replace(before, leaves=(old, new)), before) == ""


@pytest.mark.parametrize(
    ("leaf", "reason"),
    [
        (replace(HEAP, chain=("100 99 710",)), "detached and attached again"),
        (replace(HEAP, persistence="u"), "is unlogged"),
        (replace(HEAP, key=("name",)), "another replica identity than"),
    ],
)
def test_a_partition_that_changed_pauses_its_table_for_the_reason(leaf: Leaf, reason: str) -> None:
    assert reason in look(replace(PARTITIONED, leaves=(leaf,)), PARTITIONED)

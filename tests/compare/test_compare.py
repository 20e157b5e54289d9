"""A comparison of real tables finds every damage, names the row by a hash, and shows no value."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlparse

import pytest

from penstock.compare import rows as compared_rows
from penstock.compare.lake_reader import lake_reader
from penstock.compare.report import ComparedTable, TableComparison
from penstock.errors import LakeError
from tests.compare.conftest import Bench

pytestmark = pytest.mark.spark

Damaged = Callable[[str], TableComparison]


def counts(found: TableComparison) -> tuple[int, int, int]:
    return found.missing, found.extra, found.different


def test_a_mirror_of_the_hard_values_is_equal(bench: Bench, mirrored: ComparedTable) -> None:
    found = bench.compare(mirrored)
    assert found.equal, list(found.lines())
    assert (found.source_rows, found.lake_rows) == (5, 5)
    assert list(found.lines()) == ["public.pristine: equal, 5 rows in the source, 5 in the lake"]


DAMAGES = {
    "a flag": ('update orders set "Flag" = not "Flag" where id = 3', "Flag"),
    "a number": ("update orders set large = large - 1 where id = 3", "large"),
    "minus zero": ("update orders set ratio = 0 where id = 1 and part = 'b'", "ratio"),
    "minus zero in double precision": ("update orders set exact = 0 where id = 1 and part = 'b'", "exact"),
    "NaN": ("update orders set ratio = null where id = 2", "ratio"),
    "the last bit of a float": ("update orders set exact = 0.3 where id = 1 and part = 'a'", "exact"),
    "a numeric's scale": ("update orders set free = 1.50 where id = 1 and part = 'a'", "free"),
    "a cent": ("update orders set price = 1.51 where id = 1 and part = 'a'", "price"),
    "a tenth decimal": ("update orders set tiny = 0.0000000002 where id = 1 and part = 'a'", "tiny"),
    "a day": ("update orders set born = born - 1 where id = 3", "born"),
    "a microsecond": ("update orders set made = made - interval '1 us' where id = 3", "made"),
    "a moment": ("update orders set seen = seen + interval '1 us' where id = 1 and part = 'a'", "seen"),
    "a byte": ("update orders set raw = '\\x00fe' where id = 1 and part = 'a'", "raw"),
    "NULL for the empty text": ("update orders set note = null where id = 1 and part = 'b'", "note"),
    "the empty text for NULL": ("update orders set note = '' where id = 2", "note"),
    "NULL for no bytes": ("update orders set raw = null where id = 1 and part = 'b'", "raw"),
    "a blank at the end": ("update orders set note = note || ' ' where id = 3", "note"),
    "the element NULL and the text": ("update orders set names[3] = null where id = 1 and part = 'a'", "names"),
    "an element": ("update orders set many[1] = 2 where id = 1 and part = 'a'", "many"),
    "NULL for no elements": ("update orders set many = null where id = 1 and part = 'b'", "many"),
    "an element's time": ("update orders set times[1] = '2024-02-29 00:00:01' where id = 1 and part = 'a'", "times"),
    "an element's bytes": ("update orders set bytes[1] = '\\x' where id = 1 and part = 'a'", "bytes"),
    "an element's sign": ("update orders set ratios[1] = 0 where id = 3", "ratios"),
    "a misfit": ("update orders set born = '-infinity' where id = 4", "born"),
    "a misfit among elements": ("update orders set many = '{{1,2},{3,5}}' where id = 4", "many"),
    "a value for a misfit": ("update orders set price = 0 where id = 4", "price"),
    "a misfit for a value": ("update orders set made = 'infinity' where id = 3", "made"),
    "a column with an odd name": (
        "update orders set \"odd `\"\"name.x\" = 'y' where id = 1 and part = 'a'",
        'odd `"name.x',
    ),
}


@pytest.mark.parametrize(("statement", "column"), DAMAGES.values(), ids=DAMAGES)
def test_one_wrong_value_is_found_with_its_column(damaged: Damaged, statement: str, column: str) -> None:
    found = damaged(statement)
    assert counts(found) == (0, 0, 1)
    assert [row.columns for row in found.first] == [(column,)]
    assert not found.equal


def test_a_row_that_only_the_source_has_is_missing(damaged: Damaged) -> None:
    found = damaged("insert into orders (id, part) values (5, 'new')")
    assert counts(found) == (1, 0, 0)
    assert (found.source_rows, found.lake_rows) == (6, 5)


def test_a_row_that_only_the_lake_has_is_extra(damaged: Damaged) -> None:
    assert counts(damaged("delete from orders where id = 2")) == (0, 1, 0)


def test_a_changed_key_is_a_missing_and_an_extra_row(damaged: Damaged) -> None:
    assert counts(damaged("update orders set part = 'c' where id = 2")) == (1, 1, 0)


def test_several_damages_are_distinguished(damaged: Damaged) -> None:
    found = damaged(
        "delete from orders where id = 2; insert into orders (id, part) values (5, 'x'), (6, 'x');"
        "update orders set note = 'other', large = 7 where id = 3"
    )
    assert counts(found) == (2, 1, 1)
    different = [row.columns for row in found.first if row.kind == "different"]
    assert different == [("large", "note")]


def test_the_key_is_hashed_so_that_the_source_can_find_the_row(bench: Bench, damaged: Damaged) -> None:
    (row,) = damaged("update orders set note = 'other' where id = 3").first
    part = "octet_length(%s::text) || ':' || %s::text"
    find = f"select id from orders where md5({part.replace('%s', 'id')} || {part.replace('%s', 'part')}) = %s"
    assert bench.source.execute(find, row.key).fetchall() == [(3,)]


def test_a_report_shows_no_value(bench: Bench, damaged: Damaged) -> None:
    found = damaged("update orders set note = 'confidential-1', part = 'confidential-2' where id = 3")
    assert "confidential" not in repr(found) + "\n".join(found.lines())
    assert any("md5 of the key" in line for line in found.lines())


def test_rows_without_a_key_are_compared_as_often_as_they_occur(bench: Bench) -> None:
    bench.execute("create table history (a int, b text); insert into history values (1, 'x'), (1, 'x'), (2, null)")
    table = bench.mirror("history", ("compare", "history"), ())
    assert bench.compare(table).equal
    bench.execute("insert into history values (1, 'x')")
    assert counts(bench.compare(table)) == (1, 0, 0)
    bench.execute("delete from history where a = 1; insert into history values (1, 'x'), (2, null)")
    found = bench.compare(table)
    assert counts(found) == (1, 1, 0)
    assert {row.key for row in found.first} == {None}


def test_rows_deleted_by_vectors_are_gone_from_the_lake_too(bench: Bench) -> None:
    bench.execute("create table thinned (id int primary key, b text)")
    bench.execute("insert into thinned select n, 'b' || n from generate_series(1, 100) n")
    table = bench.mirror("thinned", ("compare", "thinned"), ("id",))
    before = bench.spark.sql(f"select snapshot_id from {bench.path(table.target)}.snapshots").first()
    bench.spark.sql(f"delete from {bench.path(table.target)} where id % 2 = 0")
    found = bench.compare(table)
    assert counts(found) == (50, 0, 0)
    assert len(found.first) == compared_rows.EXAMPLES
    assert before is not None
    assert bench.compare(table, before[0]).equal
    bench.execute("delete from thinned where id % 2 = 0")
    assert bench.compare(table).equal


def test_a_value_next_to_a_misfit_of_the_same_column_is_a_difference(bench: Bench) -> None:
    bench.execute("create table doubtful (id int primary key, d date); insert into doubtful values (1, 'infinity')")
    table = bench.mirror("doubtful", ("compare", "doubtful"), ("id",))
    assert bench.compare(table).equal
    bench.spark.sql(f"update {bench.path(table.target)} set d = date '2024-01-01'")
    assert counts(bench.compare(table)) == (0, 0, 1)
    bench.spark.sql(f"update {bench.path(table.target)} set d = null, _misfits = null")
    assert counts(bench.compare(table)) == (0, 0, 1)


def test_columns_of_one_side_only_are_named_and_the_others_compared(bench: Bench) -> None:
    bench.execute("create table grown (id int primary key, kept int); insert into grown values (1, 1), (2, 2)")
    table = bench.mirror("grown", ("compare", "grown"), ("id",))
    bench.spark.sql(f"alter table {bench.path(table.target)} add column late int")
    bench.execute("alter table grown add column new int; update grown set kept = 3 where id = 2")
    found = bench.compare(replace(table, columns=(*table.columns, "new")))
    assert found.columns_missing == ("new",)
    assert found.columns_extra == ("late",)
    assert counts(found) == (0, 0, 1)
    assert not found.equal


def test_a_default_of_an_added_column_reads_as_the_source_shows_it(bench: Bench) -> None:
    bench.execute("create table defaulted (id int primary key); insert into defaulted values (1), (2)")
    table = bench.mirror("defaulted", ("compare", "defaulted"), ("id",))
    bench.execute("alter table defaulted add column price numeric(8,2) default 7.5")
    java = bench.spark._jvm
    assert java is not None
    lake_table = java.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
        bench.spark._jsparkSession, f"{bench.catalog}.compare.defaulted"
    )
    literal = java.org.apache.iceberg.expressions.Literal.of("7.50").to(
        java.org.apache.iceberg.types.Types.DecimalType.of(8, 2)
    )
    decimal = java.org.apache.iceberg.types.Types.DecimalType.of(8, 2)
    lake_table.updateSchema().addColumn("price", decimal, None, literal).commit()
    found = bench.compare(replace(table, columns=(*table.columns, "price")))
    assert found.equal, list(found.lines())


def test_a_table_that_the_lake_lacks_is_reported(bench: Bench, mirrored: ComparedTable) -> None:
    found = bench.compare(replace(mirrored, target=("compare", "nowhere")))
    assert not found.equal
    assert list(found.lines()) == ["public.pristine: the lake has no table compare.nowhere"]


def test_partitions_and_row_filters_say_which_rows_count(bench: Bench) -> None:
    bench.execute(
        "create table parted (id int, b text) partition by range (id);"
        "create table low partition of parted for values from (0) to (10);"
        "create table high partition of parted for values from (10) to (20);"
        "insert into parted select n, 'b' from generate_series(0, 19) n"
    )
    table = bench.mirror("parted", ("compare", "parted"), ("id",))
    leaves = replace(table, heaps=(("public", "low"), ("public", "high")))
    assert bench.compare(leaves).equal
    assert counts(bench.compare(replace(leaves, heaps=leaves.heaps[:1]))) == (0, 10, 0)  # type: ignore[index]
    assert counts(bench.compare(replace(leaves, where="(id > 4)"))) == (0, 5, 0)


def test_an_empty_table_is_equal_to_an_empty_one_and_to_no_other(bench: Bench) -> None:
    bench.execute("create table hollow (id int primary key)")
    table = bench.mirror("hollow", ("compare", "deep down", "Hollow.Table"), ("id",))
    assert bench.compare(table).equal
    bench.execute("insert into hollow values (1)")
    assert counts(bench.compare(table)) == (1, 0, 0)


def test_a_single_column_of_nulls_has_as_many_rows_as_it_has(bench: Bench) -> None:
    bench.execute("create table single (t text); insert into single values (null), (''), (null), (E'\\\\.'), (E'\\n')")
    table = bench.mirror("single", ("compare", "single"), ())
    found = bench.compare(table)
    assert found.equal
    assert found.source_rows == 5


def test_when_too_much_differs_a_part_is_counted_and_said_to_be_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.execute(
        "create table many (id int primary key, b int); insert into many select n, n from generate_series(1, 2000) n"
    )
    table = bench.mirror("many", ("compare", "many"), ("id",))
    bench.execute("update many set b = b + 1")
    found = bench.compare(table)
    assert found.whole
    assert counts(found) == (0, 0, 2000)
    monkeypatch.setattr(compared_rows, "EXAMINED_ROWS", 100)
    part = bench.compare(table)
    assert not part.whole
    assert 0 < part.different <= 100
    assert any("at least" in line for line in part.lines())


def test_a_catalog_that_does_not_answer_is_named_without_its_password(bench: Bench, mirrored: ComparedTable) -> None:
    wrong = replace(bench.lake, password="pass-never-shown")
    with pytest.raises(LakeError) as caught, lake_reader(bench.catalog, wrong) as lake:
        lake.table(mirrored.target)
    assert caught.value.slug == "catalog-unreachable"
    assert "never-shown" not in str(caught.value)


def cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:100])


@pytest.mark.parametrize("damage", [Path.unlink, cut_short])
def test_a_data_file_that_is_gone_or_cut_short_is_reported_with_its_table(
    bench: Bench, damage: Callable[[Path], object]
) -> None:
    bench.execute("drop table if exists one_file; create table one_file (id int primary key, b text)")
    bench.execute("insert into one_file values (1, 'not-shown')")
    table = bench.mirror("one_file", ("compare", "one_file"), ("id",))
    for file in data_files(bench, table):
        damage(file)

    with pytest.raises(LakeError, match=r"compare\.one_file") as caught:
        bench.compare(table)

    assert caught.value.slug == "lake-unreadable"
    assert "not-shown" not in str(caught.value)


def data_files(bench: Bench, table: ComparedTable) -> list[Path]:
    with lake_reader(bench.catalog, bench.lake) as lake:
        found = lake.table(table.target)
        assert found is not None
        return [Path(urlparse(task.file.file_path).path) for task in found.table.scan().plan_files()]

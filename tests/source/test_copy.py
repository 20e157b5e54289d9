"""A copy reads exactly the rows that its snapshot sees, in ranges that together miss nothing and repeat nothing."""

import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from penstock.config.connections import Connection
from penstock.contract.schema import copy_schema
from penstock.engine import duck
from penstock.engine.files import Files
from penstock.engine.order import Resources
from penstock.errors import SourceError
from penstock.jobs.plans import CopyRange
from penstock.source import catalog, copy, slot
from penstock.source.catalog_snapshot import read_catalog
from penstock.source.session import SourceSession
from penstock.values.lake_types import describe
from tests.source.conftest import copied
from tests.values.cases import CASES, Case
from tests.values.engines import DuckDb
from tests.values.rendering import same


def planned(conn: SourceSession, publication: str = "p", range_bytes: int = 1 << 20) -> list[CopyRange]:
    tables = [
        catalog.with_filter(conn, publication, table) for table in read_catalog(conn, publication, sizes=True).tables
    ]
    return copy.plan_ranges(tables, range_bytes=range_bytes, folder="shop/copies/1")


def copied_rows(source: Connection, ranges: list[CopyRange]) -> list[dict[str, str | None]]:
    with slot.export_snapshot(source) as exported:
        return copied(source, ranges, exported).to_pylist()


def test_ranges_cover_the_heap_once_and_the_last_one_is_open(conn, writer):
    writer.execute("create table t (n int primary key, v text); create publication p for table t")
    writer.execute("insert into t select g, repeat('x', 1000) from generate_series(1, 200) g")

    ranges = planned(conn, range_bytes=65536)

    assert [(each.first_block, each.last_block) for each in ranges] == [(0, 7), (7, 14), (14, 21), (21, None)]
    assert len({each.path for each in ranges}) == 4
    assert all(each.path.startswith("shop/copies/1/") for each in ranges)


def test_all_ranges_together_are_the_table_also_rows_written_after_the_plan(source, conn, writer):
    writer.execute("create table t (n int primary key, v text); create publication p for table t")
    writer.execute("insert into t select g, repeat('x', 100) from generate_series(1, 5000) g")
    writer.execute("delete from t where n % 7 = 0; update t set v = 'moved' where n % 11 = 0")
    ranges = planned(conn, range_bytes=100_000)
    writer.execute("insert into t select g, repeat('x', 100) from generate_series(10001, 12000) g")

    rows = copied_rows(source, ranges)

    assert len(ranges) > 4
    expected = writer.execute("select n::text, v from t order by t.n").fetchall()
    assert sorted(((row["n"], row["v"]) for row in rows), key=lambda row: int(row[0])) == expected


def test_a_copy_sees_its_snapshot_and_nothing_later(source, conn, writer):
    writer.execute(
        "create table t (n int primary key); create publication p for table t; insert into t values (1), (2)"
    )
    with slot.create_exporting(source, "s", timeout=30) as exported:
        writer.execute("insert into t values (3); delete from t where n = 1")

        rows = copied(source, planned(conn), exported)

    assert sorted(row["n"] for row in rows.to_pylist()) == ["1", "2"]


def test_batches_are_rows_of_a_copy_of_bounded_size(source, conn, writer):
    writer.execute("create table t (n int primary key, v text); create publication p for table t")
    writer.execute("insert into t select g, repeat('x', 1000) from generate_series(1, 3000) g")
    with slot.export_snapshot(source) as exported:
        batches = list(
            copy.read_range(
                source,
                *planned(conn, range_bytes=1 << 30),
                snapshot_name=exported.snapshot_name,
                batch_bytes=100_000,
                seconds=60,
            )
        )

    assert len(batches) > 20
    assert max(batch.nbytes for batch in batches) < 200_000
    table = pa.Table.from_batches(batches)
    assert table.schema.equals(copy_schema(["n", "v"], {"n": "int"}), check_metadata=True)
    assert [row["n"] for row in table.to_pylist()] == list(range(1, 3001))


def test_what_can_be_parsed_comes_as_values(source, conn, writer):
    writer.execute(
        """create table t (n int primary key, d date, m timestamptz, p numeric(6,2), b bool, l int[], u uuid, v numeric);
        create publication p for table t; insert into t values (1, '2024-02-29', '2024-02-29 12:00:00.5+02', 1.5, true,
        '{1,null}', '00000000-0000-0000-0000-000000000001', 1.50); insert into t (n) values (2)"""
    )
    with slot.export_snapshot(source) as exported:
        rows = values(source, planned(conn), exported)

    assert rows[0] == {
        "n": 1,
        "d": date(2024, 2, 29),
        "m": datetime(2024, 2, 29, 10, 0, 0, 500_000, tzinfo=UTC),
        "p": Decimal("1.50"),
        "b": True,
        "l": [1, None],
        "u": "00000000-0000-0000-0000-000000000001",
        "v": "1.50",
    }
    assert rows[1] == {"n": 2, **dict.fromkeys("dmpbluv")}


@pytest.mark.parametrize(
    ("type", "value"),
    [("date", "infinity"), ("timestamptz", "0044-03-15 BC"), ("numeric(3,1)", "NaN"), ("int[]", "{{1}}")],
)
def test_a_range_with_a_text_that_is_no_value_of_the_lake_raises(source, conn, writer, type, value):
    writer.execute(f"create table t (n int primary key, v {type}); create publication p for table t")
    writer.execute(
        f"insert into t select n, case n when 5000 then '{value}'::{type} end from generate_series(1, 6000) n"
    )

    with slot.export_snapshot(source) as exported, pytest.raises(pa.ArrowInvalid):
        values(source, planned(conn, range_bytes=1 << 30), exported)


BINARY = [case for case in CASES if describe(case.lake).binary] + [
    Case("small", "int", ("7",)),
    Case("day", "date", ("2024-02-29",), ("-infinity", "5874897-12-31", "4714-11-24 BC")),
    Case("timestamp(3)", "timestamp_ntz", ("2024-02-29 23:59:59.9995",), ("294276-12-31 23:59:59", "4714-11-24 BC")),
]


def test_values_in_binary_form_are_those_that_their_texts_are_cast_to(source, conn, writer):
    writer.execute("create domain small as int2; create domain day as date; create publication p")
    for number, case in enumerate(BINARY):
        writer.execute(
            f"create table t{number} (n serial primary key, v {case.type}); alter publication p add table t{number}"
        )
        every = ", ".join(f"('{text}')" for text in case.fits)
        writer.execute(f"insert into t{number} (v) values {every}, (null)")
    ranges = {each.relation_name: each for each in planned(conn)}

    with slot.export_snapshot(source) as exported, duck.connect(Resources(), Files()) as db:
        for number, case in enumerate(BINARY):
            sent = values(source, [ranges[f"t{number}"]], exported)
            texts = copied(source, [ranges[f"t{number}"]], exported)["v"].to_pylist()
            cast = DuckDb(db).cast(texts, case.lake)
            assert same([row["v"] for row in sent], cast), case
            assert ranges[f"t{number}"].typed == (("n", "int"), ("v", case.lake))


@pytest.mark.parametrize(("case", "value"), [(case, value) for case in BINARY for value in case.misfits], ids=str)
def test_a_range_with_a_number_that_is_no_day_of_the_lake_raises(source, conn, writer, case, value):
    writer.execute("create domain small as int2; create domain day as date")
    writer.execute(f"create table t (n int primary key, v {case.type}); create publication p for table t")
    writer.execute(f"insert into t values (1, null), (2, '{value}'), (3, '2024-02-29')")

    with slot.export_snapshot(source) as exported, pytest.raises(pa.ArrowInvalid):
        values(source, planned(conn), exported)


def values(source, ranges, exported):
    """Return the rows of ranges as they are landed."""
    return [
        row
        for each in ranges
        for batch in copy.read_range(source, each, snapshot_name=exported.snapshot_name, batch_bytes=10_000, seconds=60)
        for row in batch.to_pylist()
    ]


def test_null_and_empty_are_two_things(source, conn, writer):
    writer.execute("create table t (n int primary key, a text, b char(2)); create publication p for table t")
    writer.execute("insert into t values (1, null, null), (2, '', '')")

    rows = copied_rows(source, planned(conn))

    assert rows == [{"n": "1", "a": None, "b": None}, {"n": "2", "a": "", "b": "  "}]


def test_a_partitioned_table_is_read_leaf_by_leaf_whatever_their_column_order(source, conn, writer):
    writer.execute(
        """create table m (n int, v text) partition by range (n);
        create table m_1 partition of m for values from (0) to (10);
        create table m_2 (v text, junk int, n int); alter table m_2 drop junk;
        alter table m attach partition m_2 for values from (10) to (20);
        alter table m_1 replica identity full; alter table m_2 replica identity full; alter table m replica identity full;
        create publication p for table m with (publish_via_partition_root = true);
        insert into m select g, 'v' || g from generate_series(0, 19) g"""
    )
    ranges = planned(conn)

    rows = copied_rows(source, ranges)

    assert [each.relation_name for each in ranges] == ["m_1", "m_2"]
    assert len({each.oid for each in ranges}) == 1
    assert sorted((int(row["n"]), row["v"]) for row in rows) == [(n, f"v{n}") for n in range(20)]


def test_rows_of_inheriting_tables_are_not_read_twice(source, conn, writer):
    writer.execute(
        """create table above (n int primary key); create table below (primary key (n)) inherits (above);
        create publication p for table only above, only below;
        insert into above values (1); insert into below values (2)"""
    )

    assert sorted(row["n"] for row in copied_rows(source, planned(conn)[:1])) == ["1"]
    assert len(planned(conn)) == 2


def test_the_publications_row_filter_and_column_list_apply(source, conn, writer):
    writer.execute(
        """create table t (n int primary key, secret text, v text);
        create publication p for table t (n, v) where (n > 2 or v = '{} %s');
        insert into t values (1, 'no', 'x'), (2, 'no', '{} %s'), (3, 'no', null)"""
    )

    assert copied_rows(source, planned(conn)) == [{"n": "2", "v": "{} %s"}, {"n": "3", "v": None}]


def test_hostile_names_are_read(source, conn, writer):
    writer.execute(
        """create schema "s""'; --"; create table "s""'; --"."select %s {}" ("order" int primary key, "a""b" bool);
        insert into "s""'; --"."select %s {}" values (1, true)"""
    )
    writer.execute("""create publication p for table "s""'; --"."select %s {}" """)

    assert copied_rows(source, planned(conn)) == [{"order": "1", 'a"b': "t"}]


def test_a_table_without_columns_still_counts_its_rows(source, conn, writer):
    writer.execute("create table t (); create publication p for table t; insert into t default values")

    with slot.export_snapshot(source) as exported:
        rows = copied(source, planned(conn), exported)

    assert rows.num_rows == 1
    assert rows.schema.equals(copy_schema([], {}))


def test_partitions_whose_rows_are_not_in_the_wal_are_not_copied(conn, database, writer):
    writer.execute(
        """create table m (n int) partition by range (n);
        create table m_1 partition of m for values from (0) to (10);
        create unlogged table m_2 partition of m for values from (10) to (20);
        create publication p for table m with (publish_via_partition_root = true)"""
    )

    assert [each.relation_name for each in planned(conn)] == ["m_1"]


def test_a_copy_whose_snapshot_is_gone_says_so(source, conn, writer):
    writer.execute("create table t (n int primary key); create publication p for table t")
    with slot.export_snapshot(source) as exported:
        pass

    with pytest.raises(SourceError) as caught:
        copied(source, planned(conn), exported)

    assert (caught.value.slug, caught.value.directive.value) == ("snapshot-gone", "retry")


def test_a_policy_that_would_hide_rows_stops_the_copy(conn, writer, new_role):
    reader = new_role("reader")
    writer.execute("create table t (n int primary key); create publication p for table t; insert into t values (1)")
    writer.execute(f"grant select on t to {reader.user}; alter table t enable row level security")

    with pytest.raises(SourceError, match="row-level security") as caught:
        copied_rows(reader, planned(conn))

    assert caught.value.slug == "source-auth"


def test_a_task_needs_drivers_and_arrow_only():
    """Spark's tasks import this module from a zip: nothing of Airflow's env may come along."""
    code = "import sys, penstock.source.copy; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": "plugins"}
    )

    assert {"psycopg", "pyarrow", "adbc_driver_postgresql"} <= set(said.stdout.split())
    assert not {"airflow", "pydantic", "yaml", "pandas", "sqlalchemy", "numba"} & set(said.stdout.split())

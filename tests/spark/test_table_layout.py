"""Mirrors that a user has partitioned or sorted by hand, and those that are stored in a way that no merge can write."""

from collections import Counter

import duckdb
import pytest

from penstock.engine import task
from penstock.engine.files import Files
from penstock.engine.order import MergeAnswer, MergeOrder
from tests.spark.histories import UNCHANGED, D, I, T, U, tx
from tests.spark.workbench import Table, Workbench, column

pytestmark = pytest.mark.spark

COLUMNS = (
    column("k", "int4", key=True),
    column("name"),
    column("day", "date"),
    column("at", "timestamptz"),
    column("amount", "numeric(10,2)"),
)
START = [
    tx(
        I(k=1, name="one", day="2024-02-29", at="2024-02-29 23:59:59.5+00", amount="1.50"),
        I(k=2, name="two", day="1969-12-31", at="1969-12-31 23:00:00+00", amount="-12.25"),
        I(k=3, name=None, day=None, at=None, amount=None),
        I(k=4, name="fo/ur é", day="infinity", at="infinity", amount="NaN"),
    )
]
CHANGES = [
    tx(
        U(k=1, name="uno", day="2024-03-01", at=UNCHANGED, amount="7.00"),
        D(k=2),
        U(old={"k": 3}, k=5, name=UNCHANGED, day=None, at=None, amount="0.01"),
        I(k=6, name="six", day="2024-03-01", at="2024-03-01 00:00:00+00", amount="7.00"),
    )
]
EXPECTED = Counter(
    [
        ("1", "uno", "2024-03-01", "2024-02-29 23:59:59.500000", "7.00"),
        ("4", "fo/ur é", "infinity", "infinity", "NaN"),
        ("5", None, None, None, "0.01"),
        ("6", "six", "2024-03-01", "2024-03-01 00:00:00", "7.00"),
    ]
)


def sql(bench: Workbench, statement: str, table: Table) -> list[tuple[object, ...]]:
    return [tuple(row) for row in bench.session().sql(statement.format(bench.name(table))).collect()]


def make(bench: Workbench, *statements: str) -> Table:
    """Merge an empty beginning, so that the table is there, and let a user alter it."""
    table = bench.table(*COLUMNS)
    bench.land(table, tx(I(k=0, name="zero", day=None, at=None, amount=None), D(k=0)))
    bench.merge()
    for statement in statements:
        sql(bench, statement, table)
    return table


@pytest.mark.parametrize(
    "fields",
    [
        ["k"],
        pytest.param(["bucket(4, k)", "truncate(2, name)"], marks=pytest.mark.slow),
        pytest.param(["month(day)"], marks=pytest.mark.slow),
        pytest.param(["day(at)", "name"], marks=pytest.mark.slow),
        ["hour(at)", "bucket(3, amount)", "year(day)"],
        ["bucket(5, name)", "truncate(10, amount)", "bucket(2, at)"],
    ],
    ids=" ".join,
)
def test_a_partitioned_table_is_written_as_its_spec_says(workbench: Workbench, fields: list[str]) -> None:
    table = make(workbench, *(f"alter table {{}} add partition field {field}" for field in fields))

    [first] = workbench.merge_of(table, *START)
    [second] = workbench.merge_of(table, *CHANGES)

    assert (first.paused_slug, second.paused_slug) == (None, None)
    assert workbench.rows(table) == EXPECTED
    rows = "select k, name, day, at, amount, _misfits from {}"
    # Spark leaves files unread by their partition: each row must be in the one that its values are in
    for k, name, day, at, *_ in sql(workbench, rows, table):
        values = {"k": str(k), "name": f"'{name}'", "day": f"date '{day}'", "at": f"timestamp '{at}'"}
        present = {"k": k, "name": name, "day": day, "at": at}
        for each, value in values.items():
            condition = f"{each} <=> {'null' if present[each] is None else value}"
            found = sql(workbench, f"select k from {{}} where {condition}", table)
            assert (k,) in found, condition


def test_a_spec_that_changed_deletes_from_files_of_either_and_writes_the_new_one(workbench: Workbench) -> None:
    table = workbench.table(*COLUMNS)
    workbench.merge_of(table, *START)
    sql(workbench, "alter table {} add partition field bucket(4, k)", table)
    [changed] = workbench.merge_of(table, *CHANGES)
    assert changed.paused_slug is None
    assert workbench.rows(table) == EXPECTED

    workbench.merge_of(table, tx(T(), I(k=9, name="nine", day=None, at=None, amount=None)))
    assert workbench.rows(table) == Counter([("9", "nine", None, None, None)])


def test_new_files_of_a_sorted_table_are_sorted(workbench: Workbench) -> None:
    table = make(workbench, "alter table {} write ordered by amount desc nulls last, bucket(2, name)")
    workbench.land(table, tx(*(I(k=k, name=f"n{k}", day=None, at=None, amount=f"{k * 7 % 40}.00") for k in range(40))))

    workbench.merge()

    amounts = [row[0] for row in sql(workbench, "select amount from {} order by _file, _pos", table)]
    assert len(amounts) == 40
    assert amounts == sorted(amounts, reverse=True)


@pytest.mark.parametrize(
    "statement",
    [
        "alter table {} set tblproperties ('write.format.default' = 'orc')",
        "alter table {} set tblproperties ('write.parquet.compression-codec' = 'lzo')",
    ],
    ids=["format", "codec"],
)
def test_a_table_that_a_merge_cannot_write_is_paused_and_continues_when_that_is_taken_back(
    workbench: Workbench, statement: str
) -> None:
    table, other = make(workbench, statement), workbench.table(*COLUMNS)
    workbench.land(table, *START)
    workbench.land(other, *START)
    before = workbench.rows(table)

    results = {result.oid: result for result in workbench.merge()}

    assert results[table.oid].paused_slug == "storage-unsupported"
    assert results[other.oid].paused_slug is None
    assert workbench.rows(table) == before
    name = statement.partition("('")[2].partition("'")[0]
    sql(workbench, f"alter table {{}} unset tblproperties ('{name}')", table)
    workbench.merge_of(table, *START)
    assert sum(workbench.rows(table).values()) == 4


def test_a_table_of_a_format_without_deletion_vectors_is_paused_until_it_is_raised(workbench: Workbench) -> None:
    table = workbench.table(*COLUMNS)
    workbench.land(table, *START)

    (paused,) = workbench.merge(table_properties={"format-version": "2"})
    assert paused.paused_slug == "storage-unsupported"

    sql(workbench, "alter table {} set tblproperties ('format-version' = '3')", table)
    workbench.land(table, *START)
    (resumed,) = workbench.merge()
    assert resumed.paused_slug is None
    assert sum(workbench.rows(table).values()) == 4


@pytest.mark.parametrize("codec", ["snappy", "gzip", "uncompressed"])
def test_new_files_have_the_codec_of_the_table(workbench: Workbench, codec: str) -> None:
    table = make(workbench, f"alter table {{}} set tblproperties ('write.parquet.compression-codec' = '{codec}')")
    workbench.merge_of(table, *START)

    [(path,)] = sql(workbench, "select file_path from {}.data_files", table)
    query = "select distinct compression from parquet_metadata(?)"
    found = duckdb.execute(query, [str(path).removeprefix("file:")]).fetchall()
    assert found == [(codec.upper(),)]


@pytest.mark.slow
def test_data_files_without_a_touched_key_are_not_read(workbench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    merge = task.merge

    def noting(order: MergeOrder, files: Files) -> MergeAnswer:
        read.append(len(order.target))
        return merge(order, files)

    table = workbench.table(column("k", "int8", key=True), column("a.b", "int4", key=True), column("v"))
    for k in range(12):
        workbench.merge_of(table, tx(*(I(k=k * 100 + n, v="x", **{"a.b": -n}) for n in range(10))))
    monkeypatch.setattr(task, "merge", noting)
    [result] = workbench.merge_of(
        table, tx(U(old={"k": 305, "a.b": -5}, k=501, v="y", **{"a.b": -9}), D(k=400, **{"a.b": 0}))
    )

    assert result.paused_slug is None
    assert read == [3]
    rows = workbench.rows(table)
    assert sum(rows.values()) == 119
    assert rows[("501", "-9", "y")] == 1

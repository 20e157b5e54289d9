"""Three readers that share no code see the same rows after every merge: Spark, PyIceberg, and DuckDB over the files."""

from collections import Counter
from typing import Any

import pytest

from penstock.compare.lake_reader import lake_reader
from penstock.engine import duck, vectors
from penstock.engine.files import Files
from penstock.engine.order import Resources, Vector
from tests.conftest import LakeCatalog
from tests.pipeline_env import connection
from tests.spark.histories import I, KeyedJudge, tx
from tests.spark.random_histories import KeyedHistories
from tests.spark.workbench import Table, Workbench, column

pytestmark = pytest.mark.spark

COLUMNS = (column("h", "int4", key=True), column("k", key=True), column("a"), column("b"), column("c", "int4"))
Rows = Counter[tuple[Any, ...]]


def by_pyiceberg(lake: LakeCatalog, table: Table) -> Rows:
    with lake_reader(lake.name, connection(lake.database, "lake")) as reader:
        found = reader.table(table.target)
        assert found is not None
        names = [each.name for each in table.columns]
        return Counter(tuple(row[name] for name in names) for row in found.table.scan().to_arrow().to_pylist())


def by_duckdb(bench: Workbench, table: Table) -> Rows:
    """Read each data file bare, without the rows that the manifest's own vector of it names."""
    session = bench.session()
    data = [row["file_path"] for row in session.sql(f"select file_path from {bench.name(table)}.data_files").collect()]
    deletes = session.sql(
        "select file_path, referenced_data_file, content_offset, content_size_in_bytes, record_count "
        f"from {bench.name(table)}.delete_files"
    ).collect()
    gone = {
        row["referenced_data_file"]: vectors.read_vector(
            Files().lake,
            Vector(row["file_path"], row["content_offset"], row["content_size_in_bytes"], row["record_count"]),
        )
        for row in deletes
    }
    assert gone.keys() <= set(data)
    names = ", ".join(duck.identifier(each.name) for each in table.columns)
    with duck.connect(Resources(), Files()) as db:
        return Counter(
            tuple(values)
            for path in data
            for at, *values in db.rows(f"select file_row_number, {names} from read_parquet({db.stored([path])})")
            if at not in gone.get(path, ())
        )


def by_spark(bench: Workbench, table: Table) -> Rows:
    names = [each.name for each in table.columns]
    return Counter(tuple(row[name] for name in names) for row in bench.session().table(bench.name(table)).collect())


def test_every_reader_sees_the_same_rows_after_each_merge(workbench: Workbench, lake: LakeCatalog) -> None:
    history, judge, table = KeyedHistories(77, 200), KeyedJudge(("h", "k")), workbench.table(*COLUMNS)
    for _ in range(4):
        transactions = history.transactions(300)
        workbench.land(table, *transactions)
        judge.apply(event for transaction in transactions for event in transaction.events)
        [result] = workbench.merge()

        expected = Counter(
            (int(row["h"]), row["k"], row["a"], row["b"], None if row["c"] is None else int(row["c"]))
            for row in judge.rows.values()
        )
        assert result.paused_slug is None
        assert by_spark(workbench, table) == by_pyiceberg(lake, table) == by_duckdb(workbench, table) == expected


TYPED = {
    "int4": ["-2147483648", "0", "7", "2147483647"],
    "int8": ["-9223372036854775808", "-1", "9223372036854775807"],
    "float4": ["-0", "0.1", "NaN", "-Infinity", "3.4028235e+38"],
    "float8": ["-0", "1e-300", "NaN", "Infinity", "-1.5"],
    "numeric(9,2)": ["-9999999.99", "0.01", "5.00"],
    "numeric(38,10)": ["-1.0000000001", "9999999999999999999999999999.0000000001", "0.0000000000"],
    "bool": ["t", "f"],
    "date": ["0001-01-01", "1969-12-31", "9999-12-31", "infinity"],
    "timestamp": ["0001-01-01 00:00:00", "1969-12-31 23:59:59.999999", "2024-02-29 12:00:00.000001"],
    "timestamptz": ["1969-12-31 23:59:59.999999+00", "2024-02-29 12:00:00.000001+00"],
    "text": ["", "a", "\U0001f600\U0001f600", "\uffff", "z" * 300, "\u00e9" * 40, "a\u0000".rstrip("\u0000")],
    "bytea": ["\\x", "\\x00ff", "\\xff" + "ff" * 40, "\\x80"],
}


def literal(text: str, lake_type: str) -> str:
    """Return the server's text of a value as a constant of Spark's."""
    if lake_type == "binary":
        return f"unhex('{text[2:]}')"
    return f"cast('{text}' as {lake_type})"


@pytest.mark.parametrize(
    "together", [pytest.param(True, id="in one file"), pytest.param(False, id="in a file each", marks=pytest.mark.slow)]
)
def test_a_filter_finds_every_value_for_the_bounds_of_files_are_right(workbench: Workbench, together: bool) -> None:
    names = {type_: f"c{n}" for n, type_ in enumerate(TYPED)}
    table = workbench.table(column("k", "int4", key=True), *(column(names[type_], type_) for type_ in TYPED))
    rows = [
        {"k": str(at), **{names[type_]: values[at] if at < len(values) else None for type_, values in TYPED.items()}}
        for at in range(max(map(len, TYPED.values())))
    ]
    for batch in [rows] if together else [[row] for row in rows]:
        workbench.merge_of(table, tx(*(I(**row) for row in batch)))

    frame = workbench.session().table(workbench.name(table))
    types = dict(frame.dtypes)
    there = {row["k"]: row for row in frame.collect()}
    wanted = {(k, name) for k, row in there.items() for name in names.values() if row[name] is not None}
    values = {name: TYPED[type_] for type_, name in names.items()}
    found = {
        (k, name)
        for k, name in wanted
        if k in {row["k"] for row in frame.where(f"{name} <=> {literal(values[name][k], types[name])}").collect()}
    }
    assert found == wanted
    assert len(found) > 40

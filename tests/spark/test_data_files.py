"""A copy's files of values become data files as they are, and reads and merges see no difference."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pyarrow as pa
import pytest

from penstock.compare.lake_reader import lake_reader
from penstock.contract.manifest import FileRef
from penstock.errors import LakeError
from tests.conftest import LakeCatalog
from tests.pipeline_env import connection
from tests.spark.histories import D, I, U, tx
from tests.spark.workbench import Table, Workbench, column

pytestmark = pytest.mark.spark

TEXTS = {
    "k": ("int8", ["1", "2", "9223372036854775807"]),
    "n": ("int4", ["-2147483648", None, "7"]),
    "s": ("text", ["", "æ, a string that is longer than sixteen letters", None]),
    "short": ("numeric(5,2)", ["-999.99", "0.00", None]),
    "middle": ("numeric(15,4)", ["99999999999.9999", "-0.0001", None]),
    "long": ("numeric(38,10)", ["1234567890123456789012345678.0123456789", "-1.0000000000", None]),
    "day": ("date", ["0001-01-01", "9999-12-31", None]),
    "moment": ("timestamptz", ["1969-12-31 23:59:59.999999+00", "2024-02-29 12:00:00+00", None]),
    "local": ("timestamp", ["0001-01-01 00:00:00", "2024-02-29 12:00:00.5", None]),
    "flag": ("bool", ["t", "f", None]),
    "r": ("float4", ["-0", "3.4028235e+38", "NaN"]),
    "d": ("float8", ["-Infinity", "5e-324", None]),
    "list": ("int4[]", ["{}", "{1,NULL,-3}", None]),
    "longs": ("int8[]", ["{9223372036854775807}", None, "{0}"]),
    "doc": ("jsonb", ['{"a": 1}', "null", None]),
}
METRICS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")


def test_a_file_of_values_lies_in_the_lake_byte_for_byte(workbench: Workbench) -> None:
    table = every_type(workbench)
    table.copy_files = [landed(table, "first"), landed(table, "second")]

    [result] = workbench.merge()

    assert Counter(lake_files(workbench, table)) == Counter(
        _path(table, name).read_bytes() for name in ("first", "second")
    )
    assert (result.counts["rows_written"], result.counts["rows_deleted"], result.counts["misfits"]) == (6, 0, 0)


def test_spark_reads_of_it_what_it_makes_of_the_texts_itself(workbench: Workbench) -> None:
    ours, sparks = every_type(workbench), every_type(workbench)
    ours.copy_files, sparks.copy_files = [landed(ours, "values")], [landed(sparks, "texts", values=False)]

    workbench.merge()

    assert len(lake_files(workbench, ours)) == len(lake_files(workbench, sparks)) == 1
    assert lake_files(workbench, sparks) != lake_files(workbench, ours)
    for vectorized in ("true", "false"):
        read = workbench.session().read.option("vectorization-enabled", vectorized)
        one, other = read.table(workbench.name(ours)), read.table(workbench.name(sparks))
        assert one.schema == other.schema
        assert [tuple(map(str, row)) for row in one.orderBy("k").collect()] == [
            tuple(map(str, row)) for row in other.orderBy("k").collect()
        ]


def test_its_metrics_are_those_of_a_file_that_a_merge_has_written(workbench: Workbench) -> None:
    copied, merged = every_type(workbench), every_type(workbench)
    copied.copy_files, merged.copy_files = [landed(copied, "values")], [landed(merged, "texts", values=False)]

    workbench.merge()

    one, other = (file_metrics(workbench, each) for each in (copied, merged))
    assert one["record_count"] == other["record_count"] == 3
    assert one["value_counts"] == other["value_counts"]
    assert one["null_value_counts"] == other["null_value_counts"]
    for name in ("lower_bounds", "upper_bounds"):
        assert other[name].items() <= one[name].items()  # DuckDB notes no bounds of floats where one is NaN
        assert len(other[name]) >= 10


def test_zeros_of_both_signs_are_found_by_any_zero(workbench: Workbench) -> None:
    """Iceberg tells -0 from 0 when it leaves files unread, so their bounds must hold both."""
    first, second = (workbench.table(column("k", "int4", key=True), column("f", "float8")) for _ in range(2))
    workbench.land(first, tx(I(k=1, f="-0"), I(k=2, f="0")))
    workbench.merge_of(second, tx(I(k=1, f="0"), I(k=2, f="-0")))

    for table in (first, second):
        for condition in ("f = 0.0D", "f = -0.0D", "f >= 0.0D", "f <= -0.0D", "f between -0.0D and 0.0D"):
            found = workbench.session().sql(f"select k from {workbench.name(table)} where {condition}")
            assert sorted(row["k"] for row in found.collect()) == [1, 2], condition


def test_pyiceberg_reads_it_next_to_files_that_spark_wrote(workbench: Workbench, lake: LakeCatalog) -> None:
    table = every_type(workbench)
    table.copy_files = [landed(table, "values")]
    workbench.merge()
    workbench.merge_of(table, tx(U(**dict.fromkeys(TEXTS) | {"k": 1, "day": "infinity"})))

    with lake_reader(lake.name, connection(lake.database, "lake")) as reader:
        found = reader.table(table.target)
        assert found is not None
        rows = found.table.scan().to_arrow().to_pylist()
        batches = list(found.batches())

    assert sorted(row["k"] for row in rows) == [1, 2, 9223372036854775807]
    assert [row["_misfits"] for row in rows if row["k"] == 1] == [[("day", "infinity")]]
    assert len({batch.schema for batch in batches}) == 1


def test_changes_are_merged_into_it_like_into_any_table(workbench: Workbench) -> None:
    table = workbench.table(column("k", "int8", key=True), column("s"), column("day", "date"))
    table.copy_files = [
        landed(table, "values", {"k": ["1", "2", "3"], "s": ["a", None, ""], "day": ["2024-02-29"] * 3})
    ]
    workbench.merge()
    workbench.land(table, tx(U(k=1, s="b", day=None), D(k=2), I(k=4, s="d", day="infinity")))

    workbench.merge()

    assert workbench.rows(table) == Counter([("1", "b", None), ("3", "", "2024-02-29"), ("4", "d", "infinity")])


def test_a_copy_of_a_table_that_has_rows_replaces_them(workbench: Workbench) -> None:
    table = workbench.table(column("k", "int8", key=True), column("s"))
    table.copy_files = [landed(table, "values", {"k": ["1", "2"], "s": ["a", "b"]})]
    workbench.merge()
    workbench.merge_of(table, tx(D(k=2)))
    table.copy_files = [landed(table, "again", {"k": ["7"], "s": ["g"]})]

    [result] = workbench.merge()

    assert workbench.rows(table) == Counter([("7", "g")])
    assert (result.counts["rows_deleted"], result.counts["rows_written"]) == (1, 1)


def test_the_commit_carries_the_marks_of_its_run(workbench: Workbench) -> None:
    table = every_type(workbench)
    table.copy_files = [landed(table, "values")]
    workbench.merge()

    snapshots = workbench.session().table(f"{workbench.name(table)}.snapshots").collect()

    assert {row["summary"]["penstock.pipeline"] for row in snapshots if row["summary"].get("added-records")} == {
        workbench.namespace
    }


@pytest.mark.parametrize(
    "wanted",
    [
        {"write.parquet.compression-codec": "snappy"},
        {"write.parquet.bloom-filter-enabled.column.k": "true"},
    ],
)
def test_where_tables_are_to_be_stored_in_another_way_the_merge_writes_them(
    workbench: Workbench, wanted: dict[str, str]
) -> None:
    table = workbench.table(column("k", "int8", key=True))
    table.copy_files = [landed(table, "values", {"k": ["1"]})]

    workbench.merge(table_properties=wanted)

    assert workbench.rows(table) == Counter([("1",)])
    assert lake_files(workbench, table) != [_path(table, "values").read_bytes()]


def test_spark_writes_what_is_cast_there_or_has_other_ids_in_the_lake(workbench: Workbench) -> None:
    cast = workbench.table(column("k", "int8", key=True), column("b", "bytea"))
    cast.copy_files = [landed(cast, "values", {"k": ["1"], "b": ["\\x00ff"]})]
    grown = workbench.table(column("k", "int8", key=True))
    grown.copy_files = [landed(grown, "values", {"k": ["1"]})]
    workbench.merge()
    grown.columns += (column("added", "int4", missing="5"),)
    workbench.merge_of(grown, tx(I(k=2, added=6)))
    grown.copy_files = [landed(grown, "later", {"k": ["1", "3"], "added": ["8", None]})]

    workbench.merge()

    [row] = workbench.session().table(workbench.name(cast)).collect()
    assert bytes(row["b"]) == b"\x00\xff"
    assert workbench.rows(grown) == Counter([("1", "8"), ("3", None)])
    assert lake_files(workbench, grown) != [_path(grown, "later").read_bytes()]


def test_a_copy_from_before_a_column_was_added_shows_what_old_rows_show(workbench: Workbench) -> None:
    table = workbench.table(column("k", "int8", key=True))
    old = landed(table, "values", {"k": ["1"]})
    table.columns += (column("added", "int4", missing="5"),)
    table.copy_files = [old]

    workbench.merge()

    assert workbench.rows(table) == Counter([("1", "5")])


def test_values_texts_and_a_file_without_rows_become_one_table(workbench: Workbench) -> None:
    table = workbench.table(column("k", "int4", key=True), column("day", "date"))
    table.copy_files = [
        landed(table, "values", {"k": ["1"], "day": ["2024-02-29"]}),
        landed(table, "texts", {"k": ["2"], "day": ["infinity"]}, values=False),
        landed(table, "nothing", {"k": [], "day": []}),
    ]

    [result] = workbench.merge()

    assert workbench.rows(table) == Counter([("1", "2024-02-29"), ("2", "infinity")])
    assert _path(table, "values").read_bytes() in lake_files(workbench, table)
    assert (result.counts["rows_written"], result.counts["misfits"]) == (2, 1)


def test_an_empty_copy_makes_an_empty_table(workbench: Workbench) -> None:
    table = workbench.table(column("k", "int4", key=True))
    table.copy_files = [landed(table, "nothing", {"k": []})]

    workbench.merge()

    assert workbench.rows(table) == Counter()


def test_hostile_names_are_taken_over_too(workbench: Workbench) -> None:
    names = ("a.b", "A.B", "order", '"; drop table x', "ключ", "a b`c")
    table = workbench.table(*(column(name, "int4", key=name == "order") for name in names))
    values = {name: [str(at), str(at + 10)] for at, name in enumerate(names)}
    table.copy_files = [landed(table, "values", values)]
    workbench.merge()
    workbench.land(table, tx(U(**dict.fromkeys(names, 12) | {"order": 2})))

    workbench.merge()

    assert workbench.rows(table) == Counter(
        [tuple("2" if name == "order" else "12" for name in names), tuple(str(at + 10) for at in range(len(names)))]
    )


def test_a_file_that_is_not_what_the_ledger_says_is_refused(workbench: Workbench) -> None:
    table = workbench.table(column("k", "int8", key=True))
    file = landed(table, "values", {"k": ["1", "2"]})
    table.copy_files = [replace(file, rows=3)]

    with pytest.raises(LakeError, match=r"landing-file-missing.*3 rows"):
        workbench.merge()


def every_type(workbench: Workbench) -> Table:
    return workbench.table(*(column(name, type_, key=name == "k") for name, (type_, _) in TEXTS.items()))


def landed(
    table: Table, name: str, texts: dict[str, list[str | None]] | None = None, *, values: bool = True
) -> FileRef:
    texts = texts or {name: each for name, (_, each) in TEXTS.items()}
    return table.copied(
        name, pa.record_batch({n: pa.array(each, pa.string()) for n, each in texts.items()}), values=values
    )


def _path(table: Table, name: str) -> Path:
    return table.folder / f"{table.oid}-{name}.parquet"


def lake_files(workbench: Workbench, table: Table) -> list[bytes]:
    """Return the bytes of the data files that the published table has."""
    files = workbench.session().table(f"{workbench.name(table)}.files").where("content = 0").collect()
    return [Path(urlparse(row["file_path"]).path).read_bytes() for row in files]


def file_metrics(workbench: Workbench, table: Table) -> dict[str, Any]:
    [row] = workbench.session().table(f"{workbench.name(table)}.files").where("content = 0").collect()
    return {name: row[name] for name in ("record_count", *METRICS)}

"""Files of a copy as data files of its table: what holds the lake's values already is taken over, not written a second time.

A file is copied byte for byte, from store to store, and joins the table with the metrics of its own footer. That asks
for a table as copies know it: its columns under the ids that a new table gives them, stored in our own way.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pyarrow as pa

from penstock.contract.schema import field_ids
from penstock.errors import LakeError
from penstock.jobs.merge_plan import FileRef
from penstock.lake import properties
from penstock.lake.columns import MISFITS, lake_column
from penstock.lake.mirror_column import MirrorColumn
from penstock.values.lake_types import STRING
from penstock.values.parsed import arrow_type
from penstock_spark.lake_table import LakeTable, commit_marked
from penstock_spark.landing import AT_ONCE
from penstock_spark.session import java

_BUFFER = 1 << 20
_PARQUET = "write.parquet."
# What Iceberg notes on every table that it makes.
_ITS_OWN = {"write.parquet.compression-codec": "zstd"}


def is_whole(file: FileRef, columns: Sequence[MirrorColumn]) -> bool:
    """Return whether a file has rows, and for each column of the table the lake's own values."""
    values = {name for name, _ in file.typed}
    return (
        file.rows > 0
        and file.columns == tuple(column.name for column in columns) != ()
        and all(column.name in values or lake_column(column).type == STRING for column in columns)
    )


def takes_copies(table: LakeTable, columns: Sequence[MirrorColumn]) -> bool:
    """Return whether a whole file is what Spark would have written into this table, the coding of its pages aside."""
    there = table.load()
    known = there.properties()
    parquet = java("org.apache.iceberg.util.PropertyUtil").propertiesWithPrefix(known, _PARQUET)
    ours = {name: value for name, value in properties.STORAGE.items() if name.startswith(_PARQUET)} | _ITS_OWN
    return (
        bool(there.spec().isUnpartitioned())
        and {_PARQUET + name: parquet[name] for name in parquet} == ours
        and known.get("write.format.default") in {None, "parquet"}
        and known.get("encryption.key-id") is None
        and _ids(there) == _copied_ids(columns)
    )


def replace_all(table: LakeTable, files: Sequence[FileRef], marks: Mapping[str, str]) -> tuple[int, int]:
    """Replace every row by those of these files, in one commit; returns how many went and how many came.

    Raises LakeError("landing-file-missing") where a file is not what the ledger says.
    """
    there = table.load()
    commit = there.newOverwrite().toBranch(table.branch)
    commit = commit.overwriteByRowFilter(java("org.apache.iceberg.expressions.Expressions").alwaysTrue())
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="data-files") as workers:
        for data_file in workers.map(partial(_take_over, table, there), files):
            commit = commit.addFile(data_file)
    commit_marked(commit, marks)
    return table.replaced()


def _take_over(table: LakeTable, there: Any, file: FileRef) -> Any:
    """Copy one file into the table's folder, and return it as Iceberg's data file."""
    hadoop = table.session.sparkContext._jsc.hadoopConfiguration()
    landed = java("org.apache.hadoop.fs.Path")(file.uri)
    target = there.io().newOutputFile(there.locationProvider().newDataLocation(f"{uuid.uuid4()}.parquet"))
    source = landed.getFileSystem(hadoop).open(landed)
    java("org.apache.hadoop.io.IOUtils").copyBytes(source, target.create(), _BUFFER, True)
    copied = target.toInputFile()
    metrics = java("org.apache.iceberg.parquet.ParquetUtil").fileMetrics(
        copied, java("org.apache.iceberg.MetricsConfig").forTable(there)
    )
    if (int(copied.getLength()), int(metrics.recordCount())) != (file.bytes, file.rows):
        raise LakeError(
            "landing-file-missing",
            f"expected {file.bytes} bytes and {file.rows} rows at {file.uri}, got another file; restore the file",
        )
    return java("org.apache.iceberg.DataFiles").builder(there.spec()).withInputFile(copied).withMetrics(metrics).build()


def _copied_ids(columns: Sequence[MirrorColumn]) -> dict[str, tuple[int, ...]]:
    types = [arrow_type(lake_column(column).type) or pa.string() for column in columns]
    return dict(zip([*(column.name for column in columns), MISFITS.name], field_ids(types), strict=True))


def _ids(there: Any) -> dict[str, tuple[int, ...]]:
    """Return each column's id, then those of what is in it."""
    fields = json.loads(java("org.apache.iceberg.SchemaParser").toJson(there.schema()))["fields"]
    return {field["name"]: (field["id"], *_inner_ids(field["type"])) for field in fields}


def _inner_ids(type_: Any) -> tuple[int, ...]:
    known = type_ if isinstance(type_, dict) else {}
    return tuple(known[part] for part in ("element-id", "key-id", "value-id") if part in known)

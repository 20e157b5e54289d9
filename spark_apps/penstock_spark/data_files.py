"""Files of a copy as data files of its table: what holds the lake's values already is taken over, not written a second time.

A file is copied byte for byte, from store to store, and joins the table with the metrics of its own footer. That asks
for a table as copies know it: its columns under the ids that a new table gives them, stored in our own way.
"""

import shutil
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.contract.manifest import FileRef
from penstock.contract.schema import field_ids
from penstock.engine.files import is_on_disk, path_on_disk
from penstock.errors import LakeError
from penstock.lake import properties
from penstock.lake.columns import MISFITS, lake_column
from penstock.shapes.mirror_column import MirrorColumn
from penstock.values.lake_types import STRING
from penstock.values.parsed import arrow_type
from penstock_spark.iceberg_table import IcebergTable
from penstock_spark.lake_table import LakeTable
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
        and file.fields is None
        and file.columns == tuple(column.name for column in columns) != ()
        and all(column.name in values or lake_column(column).type == STRING for column in columns)
    )


def takes_copies(there: IcebergTable, columns: Sequence[MirrorColumn]) -> bool:
    """Return whether a whole file is what a merge would have written into this table, the coding of its pages aside."""
    known = there.java.properties()
    parquet = java("org.apache.iceberg.util.PropertyUtil").propertiesWithPrefix(known, _PARQUET)
    ours = {name: value for name, value in properties.STORAGE.items() if name.startswith(_PARQUET)} | _ITS_OWN
    return (
        bool(there.java.spec().isUnpartitioned())
        and bool(there.java.sortOrder().isUnsorted())
        and {_PARQUET + name: parquet[name] for name in parquet} == ours
        and known.get("write.format.default") in {None, "parquet"}
        and known.get("encryption.key-id") is None
        and {name: there.ids(name) for name in there.fields} == _copied_ids(columns)
    )


def take_over(table: LakeTable, there: IcebergTable, files: Sequence[FileRef]) -> list[Any]:
    """Copy files into the table's folder, and return them as Iceberg's data files.

    Raises LakeError("landing-file-missing") where a file is not what the ledger says.
    """
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="data-files") as workers:
        return list(workers.map(partial(_take_over, table, there), files))


def _take_over(table: LakeTable, there: IcebergTable, file: FileRef) -> Any:
    """Copy one file into the table's folder, and return it as Iceberg's data file."""
    location = str(there.java.locationProvider().newDataLocation(f"{uuid.uuid4()}.parquet"))
    if is_on_disk(file.uri) and is_on_disk(location):
        _copy_on_disk(Path(path_on_disk(file.uri)), Path(path_on_disk(location)))
    else:
        hadoop = table.session.sparkContext._jsc.hadoopConfiguration()
        landed = java("org.apache.hadoop.fs.Path")(file.uri)
        source, target = landed.getFileSystem(hadoop).open(landed), there.java.io().newOutputFile(location).create()
        java("org.apache.hadoop.io.IOUtils").copyBytes(source, target, _BUFFER, True)
    made, size, rows = there.parquet(location)
    if (size, rows) != (file.bytes, file.rows):
        raise LakeError(
            "landing-file-missing",
            f"expected {file.bytes} bytes and {file.rows} rows at {file.uri}, got another file; restore the file",
        )
    return made.build()


def _copy_on_disk(source: Path, target: Path) -> None:
    """Let the kernel copy; Java would compute the checksum of every block on the way."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _copied_ids(columns: Sequence[MirrorColumn]) -> dict[str, tuple[int, ...]]:
    types = [arrow_type(lake_column(column).type) or pa.string() for column in columns]
    return dict(zip([*(column.name for column in columns), MISFITS.name], field_ids(types), strict=True))

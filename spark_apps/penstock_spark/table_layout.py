"""How a table is stored: what the engine's tasks must know of it, or why they cannot write it.

Users partition and sort mirrors by hand; formats, encryption and transforms that the engine does not know pause the table.
"""

import json
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from penstock.config.validators import FORMAT_VERSION
from penstock.engine import transforms
from penstock.engine.order import Column, Layout, LayoutField, Storage
from penstock.errors import LakeError
from penstock_spark.iceberg_table import IcebergTable
from penstock_spark.lake_table import LakeTable
from penstock_spark.session import java
from penstock_spark.stores import REACHED

_CODECS = {"uncompressed": "uncompressed", "none": "uncompressed"} | {
    name: name for name in ("zstd", "snappy", "gzip", "brotli")
}
_EPOCH = date(1970, 1, 1)


def unsupported(table: LakeTable, what: str) -> LakeError:
    """Return the error that pauses a table which is stored in a way that a merge cannot continue."""
    return LakeError(
        "storage-unsupported",
        f"expected {'.'.join(table.target)} to be stored as unencrypted Parquet in Iceberg's format {FORMAT_VERSION}, partitioned "
        f"and sorted by transforms that a merge can compute, got {what}; change the table, then resume it",
    )


def require_known(table: LakeTable, there: IcebergTable) -> None:
    """Raise LakeError("storage-unsupported") on a format, a version of the format, an encryption or a store that the engine does not know."""
    version = int(there.java.operations().current().formatVersion())
    if version < int(FORMAT_VERSION):
        raise unsupported(table, f"format-version {version}")
    known = there.java.properties()
    format_ = known.get("write.format.default") or "parquet"
    if str(format_).lower() != "parquet":
        raise unsupported(table, f"write.format.default = {format_}")
    if known.get("encryption.key-id") is not None:
        raise unsupported(table, "encryption.key-id")
    scheme = urlsplit(there.folder).scheme
    if scheme not in REACHED:
        raise unsupported(table, f"a location of the scheme {scheme}")


def _storage(table: LakeTable, there: IcebergTable) -> Storage:
    """Return how the table's properties want new files."""
    known = there.java.properties()

    def value(name: str, default: str) -> str:
        return str(known.get(name) or default)

    codec = value("write.parquet.compression-codec", "zstd").lower()
    if codec not in _CODECS:
        raise unsupported(table, f"write.parquet.compression-codec = {codec}")
    level = known.get("write.parquet.compression-level")
    return Storage(
        codec=_CODECS[codec],
        level=None if level is None else int(level),
        row_group_bytes=int(value("write.parquet.row-group-size-bytes", str(128 << 20))),
        file_bytes=int(value("write.target-file-size-bytes", str(512 << 20))),
    )


def layout(table: LakeTable, there: IcebergTable, columns: Sequence[Column]) -> Layout:
    """Return where the table's new files go, and how their rows are divided, sorted and stored; raises LakeError("storage-unsupported")."""
    folder = str(there.java.locationProvider().newDataLocation("x")).removesuffix("/x")
    return Layout(folder, _partition(table, there, columns), _sort(table, there, columns), _storage(table, there))


def _partition(table: LakeTable, there: IcebergTable, columns: Sequence[Column]) -> tuple[LayoutField, ...]:
    if there.java.spec().isUnpartitioned():
        return ()
    spec = json.loads(java("org.apache.iceberg.PartitionSpecParser").toJson(there.java.spec()))
    return tuple(
        LayoutField(*_source(table, columns, each, "partitioned", transforms.partitions)) for each in spec["fields"]
    )


def _sort(table: LakeTable, there: IcebergTable, columns: Sequence[Column]) -> tuple[LayoutField, ...]:
    if there.java.sortOrder().isUnsorted():
        return ()
    order = json.loads(java("org.apache.iceberg.SortOrderParser").toJson(there.java.sortOrder()))
    return tuple(
        LayoutField(
            *_source(table, columns, each, "sorted", transforms.known),
            descending=each["direction"] == "desc",
            nulls_first=each["null-order"] == "nulls-first",
        )
        for each in order["fields"]
    )


def partition_values(spec: Any, values: Sequence[Any]) -> dict[str, Any]:
    """Return a partition's values by field id. Source: Iceberg specification, "JSON single-value serialization"."""
    fields = json.loads(java("org.apache.iceberg.PartitionSpecParser").toJson(spec))["fields"]
    return {
        str(each["field-id"]): _json(value, day=each["transform"] == "day")
        for each, value in zip(fields, values, strict=True)
    }


def _source(
    table: LakeTable, columns: Sequence[Column], part: dict[str, Any], how: str, known: Callable[[str, str], bool]
) -> tuple[int, str]:
    position = next((at for at, column in enumerate(columns) if column.ids[0] == part["source-id"]), None)
    transform = part["transform"]
    if position is None or not known(transform, columns[position].lake_type):
        of = "" if position is None else f" of {columns[position].lake_type}"
        raise unsupported(table, f"a table that is {how} by {transform}{of}")
    return position, transform


def _json(value: Any, *, day: bool) -> Any:
    if value is not None and day:
        return (_EPOCH + timedelta(days=value)).isoformat()
    if isinstance(value, date | datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex().upper()
    return str(value) if isinstance(value, Decimal) else value

"""Landing files as a DataFrame of changes, in the columns that the plan gives the table.

A file of an older relation version lacks the columns added since: its rows show PostgreSQL's fast default there,
as the source itself does. What must not be merged is left out here, so that later steps see only what counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from itertools import groupby

from py4j.protocol import Py4JJavaError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, LongType, StringType, StructField, StructType

from penstock.contract.manifest import Typed
from penstock.contract.schema import CONTRACT_KEY, CONTRACT_VERSION, COPY_VERSION, NO_COLUMNS_FIELD
from penstock.errors import LakeError
from penstock.jobs.merge_plan import FileRef
from penstock.lake.columns import lake_column
from penstock.lake.mirror_column import MirrorColumn
from penstock.lake.quoting import identifier
from penstock_spark.session import java

AT_ONCE = 8
"""So many files of a copy the driver looks at, or copies, at once: a store answers many as fast as one."""

CHANGE = ("commit_lsn", "ordinal", "op", "xid", "new", "old", "old_kind", "unchanged")
_ITSELF = "${penstock.itself}"


@dataclass(frozen=True, slots=True)
class SourceSnapshot:
    """Hold what a snapshot of the source saw.

    Source: PostgreSQL documentation, "Transaction ID and Snapshot Information Functions" (pg_snapshot).
    """

    xmin: int
    xmax: int
    in_progress: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> SourceSnapshot:
        """Read the text form `xmin:xmax:xip,xip,...`."""
        match = re.fullmatch(r"(\d+):(\d+):((?:\d+(?:,\d+)*)?)", text)
        if match is None:
            raise ValueError("a snapshot must look like 10:20:10,14,15")
        return cls(int(match[1]), int(match[2]), tuple(int(xid) for xid in match[3].split(",") if xid))

    def sees(self, xid: Column) -> Column:
        """Return whether the snapshot saw the commit of a transaction."""
        return (xid < self.xmin) | ((xid < self.xmax) & ~xid.isin(*self.in_progress))


def read(session: SparkSession, files: Sequence[FileRef], columns: Sequence[MirrorColumn]) -> DataFrame:
    """Return the changes of landing files, with `new` and `old` as structs of the planned columns' texts.

    Raises LakeError("landing-file-missing"), ("landing-version"), or ("schema-change") when a file has a column
    that the plan does not know.
    """
    if not files:
        return session.createDataFrame([], _schema(columns))
    for file in files:
        check_contract(session, file.uri, CONTRACT_VERSION)
    by_columns = sorted(files, key=lambda file: file.columns)
    parts = [_changes(session, list(group), columns) for _, group in groupby(by_columns, lambda file: file.columns)]
    return reduce(DataFrame.unionByName, parts)


def check_copy(session: SparkSession, files: Sequence[FileRef], columns: Sequence[MirrorColumn]) -> None:
    """Look at the footer of each file of a copy.

    Raises LakeError("landing-file-missing"), ("landing-version"), or ("schema-change") where the lake has another type
    now for a column that was landed as values.
    """
    uris = [file.uri for file in files]
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="landing") as workers:
        list(workers.map(lambda uri: check_contract(session, uri, COPY_VERSION), uris))
    types = {column.name: lake_column(column).type for column in columns}
    changed = sorted({name for file in files for name, type_ in file.typed if types.get(name) != type_})
    if changed:
        raise LakeError(
            "schema-change",
            f"expected the copy to hold values of the lake's types, but those of {', '.join(changed)} have changed; "
            "copy the table again",
        )


def read_copy(
    session: SparkSession, files: Sequence[FileRef], columns: Sequence[MirrorColumn]
) -> list[tuple[frozenset[str], DataFrame]]:
    """Return a copy's rows as `new`, apart by the columns that hold values of the lake's types instead of texts.

    Raises LakeError("schema-change") on columns that the plan does not know.
    """

    def layout(file: FileRef) -> tuple[tuple[str, ...], Typed]:
        return file.columns, file.typed

    return [
        (frozenset(dict(typed)), _rows(session, list(group), columns))
        for (_, typed), group in groupby(sorted(files, key=layout), layout)
    ]


def leave_out(
    changes: DataFrame, skip_commit_lsns: Sequence[int], seen_by: SourceSnapshot | None, before: int | None = None
) -> DataFrame:
    """Leave out the transactions that the operator skips, that the table's copy already shows, and that come too late."""
    if before is not None:
        changes = changes.where(F.col("commit_lsn") < before)
    if skip_commit_lsns:
        changes = changes.where(~F.col("commit_lsn").isin(*skip_commit_lsns))
    return changes.where(~seen_by.sees(F.col("xid"))) if seen_by else changes


def last_truncate(changes: DataFrame) -> tuple[int, int] | None:
    """Return the position (commit LSN, ordinal) of the last TRUNCATE, or None."""
    position = F.max(F.struct("commit_lsn", "ordinal")).alias("position")
    found = changes.where(F.col("op") == "T").agg(position).collect()[0]["position"]
    return (found["commit_lsn"], found["ordinal"]) if found else None


def after(changes: DataFrame, position: tuple[int, int]) -> DataFrame:
    """Keep the changes after a position."""
    lsn, ordinal = position
    later = (F.col("commit_lsn") > lsn) | ((F.col("commit_lsn") == lsn) & (F.col("ordinal") > ordinal))
    return changes.where(later)


def left_out(changes: DataFrame) -> dict[str, bool]:
    """Name the columns that some change leaves out as unchanged TOAST; True where no old image supplies one."""
    unsupplied = ~F.col("old_kind").eqNullSafe("O")
    names = changes.select(F.explode("unchanged").alias("name"), unsupplied.alias("unknown"))
    found = names.groupBy("name").agg(F.max("unknown").alias("unknown")).collect()
    return {row["name"]: row["unknown"] for row in found}


def _changes(session: SparkSession, files: Sequence[FileRef], columns: Sequence[MirrorColumn]) -> DataFrame:
    """Read files of changes that have the same columns."""
    present = _present(files[0], columns)
    frame = read_parquet(session, _schema(present), [file.uri for file in files])
    if len(present) == len(columns):
        return frame
    there = {column.name for column in present}
    return frame.select(*(_completed(name, columns, there) if name in ("new", "old") else name for name in CHANGE))


def _rows(session: SparkSession, files: Sequence[FileRef], columns: Sequence[MirrorColumn]) -> DataFrame:
    """Read files of a copy that have the same columns and types: each row as an image `new`."""
    present, typed = _present(files[0], columns), dict(files[0].typed)
    fields = [StructField(column.name, _parsed(typed.get(column.name, "string"))) for column in present]
    there = StructType(fields or [StructField(NO_COLUMNS_FIELD, StringType())])
    rows = read_parquet(session, there, [file.uri for file in files])
    frame = rows.select(F.struct(*(F.col(identifier(field.name)) for field in fields)).alias("new"))
    if len(present) == len(columns):
        return frame
    return frame.select(_completed("new", columns, {field.name for field in fields}))


def _present(file: FileRef, columns: Sequence[MirrorColumn]) -> list[MirrorColumn]:
    """Return the planned columns that a file has; raises LakeError("schema-change") where it has others."""
    there = set(file.columns)
    strange = there - {column.name for column in columns}
    if strange:
        raise LakeError(
            "schema-change",
            f"expected landing files with the table's columns only, got {', '.join(sorted(strange))} too; "
            "copy the table again",
        )
    return [column for column in columns if column.name in there]


def read_parquet(session: SparkSession, schema: StructType, uris: Sequence[str]) -> DataFrame:
    """Read files by a schema of any names.

    Spark hands the schema to its readers as a setting of Hadoop's, which puts the values of other settings, of variables and
    of Java's properties in place of each `${name}`. A setting that stands for itself ends that: Hadoop then returns the text
    as it was. So such a name is made the first column.
    """
    if "${" not in schema.json():
        return session.read.schema(schema).parquet(*uris)
    first = StructType([StructField(_ITSELF, StringType()), *schema.fields])
    read = session.read.option(_ITSELF[2:-1], _ITSELF).schema(first).parquet(*uris)
    name = identifier(_ITSELF)
    return read.where(f"{name} is null").drop(F.col(name))  # no file has it; the condition keeps it in the schema


def _schema(columns: Sequence[MirrorColumn]) -> StructType:
    row = StructType([StructField(column.name, StringType()) for column in columns])
    types = {"commit_lsn": LongType(), "ordinal": LongType(), "xid": LongType(), "new": row, "old": row}
    types["unchanged"] = ArrayType(StringType())
    return StructType([StructField(name, types.get(name, StringType())) for name in CHANGE])


def _parsed(lake_type: str) -> DataType:
    return DataType.fromDDL(lake_type)


def _completed(image: str, columns: Sequence[MirrorColumn], there: set[str]) -> Column:
    """Give an image of an older relation version the columns added since, as old rows show them."""
    fields = (
        F.col(image).getField(column.name) if column.name in there else F.lit(column.missing_text).cast("string")
        for column in columns
    )
    row = F.struct(*(field.alias(column.name) for field, column in zip(fields, columns, strict=True)))
    return F.when(F.col(image).isNotNull(), row).alias(image)


def check_contract(session: SparkSession, uri: str, expected: int) -> None:
    """Require that a file was written by this version of the contract, as its footer says."""
    hadoop = session.sparkContext._jsc.hadoopConfiguration()
    no_rows = java("org.apache.parquet.format.converter.ParquetMetadataConverter").SKIP_ROW_GROUPS
    try:
        path = java("org.apache.hadoop.fs.Path")(uri)
        footer = java("org.apache.parquet.hadoop.ParquetFileReader").readFooter(hadoop, path, no_rows)
    except Py4JJavaError as error:  # a missing file and a cut one fail alike, in different Java classes
        cause = error.java_exception.getClass().getSimpleName()
        raise _missing(uri, cause) from None
    version = footer.getFileMetaData().getKeyValueMetaData().get(CONTRACT_KEY.decode())
    if version != str(expected):
        raise LakeError("landing-version", f"{uri} must have contract version {expected}, got {version} instead")


def _missing(uri: str, cause: str) -> LakeError:
    return LakeError("landing-file-missing", f"expected a whole landing file at {uri}, got {cause}; restore the file")

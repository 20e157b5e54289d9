"""One table's changelog during a fill: made or evolved, its interval replaced on a branch, and staged.

Landing files are read with the interval as a filter, so that row groups of other times stay unread. Files of one
relation version are cast alike; fields that a version lacks are NULL.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType, TimestampType

from penstock.contract.schema import CONTRACT_VERSION, NO_COLUMNS_FIELD
from penstock.errors import LakeError
from penstock.jobs.changelog_plan import (
    ChangelogFile,
    ChangelogPlan,
    ChangelogTable,
    ChangelogTableResult,
    MissingTransaction,
)
from penstock.jobs.pointers import Pointer
from penstock.lake import changelog, properties
from penstock.lake.columns import LakeColumn
from penstock.lake.quoting import path
from penstock_spark.iceberg_table import IcebergTable
from penstock_spark.lake_table import LakeTable
from penstock_spark.landing import check_contract, read_parquet
from penstock_spark.session import configure, fit_to

TASK_BYTES = 64 << 20  # of landing Parquet, per task and file that it writes
_PLAIN = ("commit_lsn", "ordinal", "op", "committed_at", "xid", "origin", "old_kind", "unchanged")

_log = logging.getLogger("penstock.changelog")


def fill_table(session: SparkSession, plan: ChangelogPlan, order: ChangelogTable) -> ChangelogTableResult:
    """Carry out one table's part of the plan; an error that concerns this table alone is part of the result."""
    started = time.monotonic()
    table = LakeTable(session, plan.catalog, order.target, plan.branch)
    pointer = snapshot_id = error = None
    rows = removed = 0
    try:
        pointer = _fill(session, plan, order, table)
        if pointer is not None:
            snapshot_id = table.head()
            rows, removed = table.counted("added-records", "deleted-records")
            rows -= len(order.missing)
    except LakeError as raised:
        if raised.slug not in ("foreign-commit", "schema-change"):
            raise
        error = raised
    seconds = time.monotonic() - started
    _log.info("%s: %d changes, %.1f s%s", ".".join(order.target), rows, seconds, f": {error}" if error else "")
    return ChangelogTableResult(
        target=order.target,
        pointer=pointer,
        snapshot_id=snapshot_id,
        rows=rows,
        removed=removed,
        seconds=round(seconds, 3),
        slug=error.slug if error else None,
        reason=error.message if error else None,
    )


def _fill(session: SparkSession, plan: ChangelogPlan, order: ChangelogTable, table: LakeTable) -> Pointer | None:
    """Replace the interval on the branch; None where there is nothing to write and nothing to take away."""
    there = table.look()
    if order.empty and there is None:
        return None
    marks = {properties.PIPELINE: plan.pipeline, properties.ATTEMPT: plan.attempt}
    configure(session, properties.snapshot_conf(marks))
    fit_to(session, order.bytes)
    if there is None:
        _create(plan, order, table)
    _require_ours(plan, table)
    fields = _evolve(order, table)
    if order.empty and not _holds(table, plan.condition):
        return None
    table.cut_branch()
    _replace(table, plan, _changes(session, plan, order, fields))
    return table.stage({})


def _create(plan: ChangelogPlan, order: ChangelogTable, table: LakeTable) -> None:
    known = properties.for_new_table(plan.pipeline, plan.table_properties, plan.era)
    table.create(changelog.changelog_columns(order.columns), known, changelog.PARTITIONED_BY)
    table.session.sql(changelog.order_rows(table.sql_name))


def _require_ours(plan: ChangelogPlan, table: LakeTable) -> None:
    if IcebergTable(table.load()).property(properties.PIPELINE) != plan.pipeline:
        raise LakeError(
            "foreign-commit",
            f"expected {'.'.join(table.target)} to be a changelog of {plan.pipeline}, it is another writer's table; "
            "move it out of the way, then fill the interval again",
        )


def _evolve(order: ChangelogTable, table: LakeTable) -> tuple[LakeColumn, ...]:
    """Add the fields that the changelog lacks, widen others; return all that it has then, with their types."""
    image = table.session.table(table.sql_name).schema["new"].dataType
    present = [LakeColumn(field.name, field.dataType.simpleString()) for field in image.fields]
    fields = changelog.united(present, order.columns)
    for statement in changelog.evolve(table.sql_name, present, fields):
        table.session.sql(statement)
    return fields


def _holds(table: LakeTable, condition: str) -> bool:
    """Return whether main has a row of the interval; partitions and files of other times stay unread."""
    return not table.session.table(table.sql_name).where(condition).limit(1).isEmpty()


def _replace(table: LakeTable, plan: ChangelogPlan, rows: DataFrame) -> None:
    """Let these rows take the place of the interval's: in one commit, unless a file holds rows of other times too."""
    if _straddled(table, plan):
        table.session.sql(changelog.delete_rows(table.branch_sql_name, plan.condition))
        rows.writeTo(table.branch_sql_name).append()
    else:
        rows.writeTo(table.branch_sql_name).overwrite(F.expr(plan.condition))


def _straddled(table: LakeTable, plan: ChangelogPlan) -> bool:
    """Return whether a file may have rows within the interval and others outside of it, as after a compaction."""
    bounds = "readable_metrics.committed_at.{}_bound"
    files = table.session.table(path(table.catalog, *table.target, "data_files"))
    return not files.where(plan.straddled(bounds.format("lower"), bounds.format("upper"))).limit(1).isEmpty()


def _changes(
    session: SparkSession, plan: ChangelogPlan, order: ChangelogTable, fields: Sequence[LakeColumn]
) -> DataFrame:
    """Return the changelog's rows of the interval."""
    for file in order.files:
        check_contract(session, file.uri, CONTRACT_VERSION)
    parts = [_typed(_read(session, plan, alike), alike, fields) for alike in _alike(order.files)]
    changes = reduce(DataFrame.unionByName, parts or [session.table(path(plan.catalog, *order.target)).where("false")])
    if order.missing:
        changes = changes.unionByName(_missing(session, order.missing), allowMissingColumns=True)
    fewest = session.sparkContext.defaultParallelism
    return changes.coalesce(max(fewest, -(-order.bytes // TASK_BYTES)))


def _missing(session: SparkSession, missing: Sequence[MissingTransaction]) -> DataFrame:
    """Return a row for each transaction that is missing: no image, only its place, and that it is missing."""
    rows = [(each.era, each.commit_lsn, 0, changelog.MISSING, each.committed_at, each.xid) for each in missing]
    columns = "era int, commit_lsn long, ordinal long, op string, committed_at timestamp, xid long"
    return session.createDataFrame(rows, columns)


@dataclass(frozen=True)
class _Alike:
    """Hold files of one era with the same columns."""

    era: int
    columns: tuple[str, ...]
    uris: tuple[str, ...]


def _alike(files: Sequence[ChangelogFile]) -> Iterator[_Alike]:
    def kind(file: ChangelogFile) -> tuple[int, tuple[str, ...]]:
        return file.era, file.columns

    for (era, columns), group in groupby(sorted(files, key=kind), kind):
        yield _Alike(era, columns or (NO_COLUMNS_FIELD,), tuple(file.uri for file in group))


def _read(session: SparkSession, plan: ChangelogPlan, files: _Alike) -> DataFrame:
    image = StructType([StructField(name, StringType()) for name in files.columns])
    types = {"commit_lsn": LongType(), "ordinal": LongType(), "xid": LongType(), "committed_at": TimestampType()}
    types |= {"unchanged": ArrayType(StringType())} | dict.fromkeys(changelog.IMAGES, image)
    schema = StructType([StructField(name, types.get(name, StringType())) for name in (*_PLAIN, *changelog.IMAGES)])
    return read_parquet(session, schema, files.uris).where(plan.condition)


def _typed(changes: DataFrame, files: _Alike, fields: Sequence[LakeColumn]) -> DataFrame:
    """Cast the texts of both images, and keep next to them what does not fit."""
    there = frozenset(files.columns)
    images = changelog.IMAGES
    casts = {name: sql for image in images for name, sql in changelog.typed_fields(image, fields, there).items()}
    misfits = {f"{image}_misfits": changelog.image_misfits(image, fields, there) for image in images}
    cast = changes.withColumns({name: F.expr(sql) for name, sql in casts.items()})
    return cast.select(
        F.lit(files.era).cast("int").alias("era"),
        *(F.col(name) for name in _PLAIN if name != "unchanged"),
        F.col("unchanged").alias("unknown"),
        *(F.expr(changelog.typed_image(image, fields)).alias(image) for image in images),
        *(F.expr(sql).alias(name) for name, sql in misfits.items()),
    )

"""Copy tables of the source into the landing zone under one exported snapshot: the one way, for every load and reload.

Spark reads; a finished table is proved by a small result file beside its data, whatever becomes of the run that made it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from penstock.flow.context import Context
from penstock.flow.spark_job import SparkJob, Submit, describe
from penstock.lake.plan import CopyPlan
from penstock.landing import layout
from penstock.landing.manifest import FileEntry
from penstock.source.copy import plan_ranges
from penstock.source.slot import Exported
from penstock.source.tables import SourceTable


def copy_tables(ctx: Context, exported: Exported, copy_id: str, sources: Sequence[SourceTable], submit: Submit) -> None:
    """Have Spark land these tables, with their sizes known, while the snapshot is held; raises SourceError, LakeError."""
    folder = layout.copy_folder(ctx.name, copy_id)
    settings = ctx.pipeline.copy_
    plan = CopyPlan(
        pipeline=ctx.name,
        attempt=copy_id,
        landing_uri=ctx.pipeline.landing.uri,
        landing_options=dict(ctx.pipeline.landing.options),
        result_folder=folder,
        snapshot_name=exported.snapshot_name,
        parallel=settings.parallel,
        batch_bytes=ctx.pipeline.capture.batch_bytes,
        ranges=tuple(plan_ranges(sources, range_bytes=settings.range_bytes, folder=folder)),
    )
    ctx.landing.write_text(f"{folder}/plan.json", plan.dumps())
    ctx.progress(f"copying {len(sources)} tables in {len(plan.ranges)} ranges, {settings.parallel} at once")
    submit(_job(ctx, f"{folder}/plan.json"))


def copied_files(ctx: Context, copy_id: str, oid: int) -> list[FileEntry] | None:
    """Return the files of a table that was copied to its end; None where no result proves that."""
    path = f"{layout.copy_folder(ctx.name, copy_id)}/{oid}.json"
    if not ctx.landing.exists(path):
        return None
    files = [FileEntry.from_json(entry) for entry in json.loads(ctx.landing.read_text(path))["files"]]
    ctx.progress(f"copied table {oid}: {sum(entry.rows for entry in files)} rows")
    return files


def _job(ctx: Context, plan: str) -> SparkJob:
    return describe(ctx, "copy_tables", ("--plan", ctx.landing.uri(plan)), ctx.source.environment("SOURCE"))

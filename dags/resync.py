"""### Copy tables again while everything else continues: when tables joined or changed, and by hand

**Does** a fresh copy of the `tables` named, each as `schema.table`, or, when none is named, of all tables that wait for one
(new in the pipeline, or paused by `schema-change` or `publication-changed` where `tables.on_change` is `resync`): a snapshot of its own on the source -> copy -> a fresh table built from the copy and the windows since, next to
the one that readers see -> one cut in which it takes the name. Triggered by hand it only says what it would do, until `dry_run` is set to false.

**For** a table that is paused by `schema-change`, `publication-changed`, `foreign-commit` or `divergence`, one that `verify` finds different, and
one that joined the publication. Capture wakes this DAG for a table that joined, unless `tables.on_added` is `wait`, and for
one paused by the first two of these, unless `tables.on_change` is `pause`: at once, and where that did not help after ten minutes,
then twice as long each time, a day at most. Columns are those that the source has now; rows deleted there meanwhile are gone. Exact
without a key as well.

**Meanwhile** the table stays as it is: a healthy one is merged, a paused one stays readable. Capture continues, so no WAL is
kept for the copy; but its snapshot holds back vacuum on the source while it lasts. The table that was replaced stays in
the namespace `_penstock_old_<rebuild>` until maintenance drops it.

**Safe to repeat, to clear, to kill.** Trigger it again with the same tables: finished copies stay finished, and so do the chunks
that were built. To end one half-way, trigger it with `abandon`.

**If it fails:** `rebuild-open` means that a replay of the table is under way, `work-under-way` that another run is at work on it.
"""

from typing import Any

from airflow.sdk import DAG, Param, task

from penstock.config.model import Pipeline
from penstock.flow.context import Context, any_copied
from penstock.orchestration.assets import asset
from penstock.orchestration.dags import dag_arguments, dags, dry_run
from penstock.orchestration.table_choices import tables_param
from penstock.orchestration.task_groups import rebuilding
from penstock.orchestration.tasks import SOURCE_POOL, woken, working


def wakes(pipeline: Pipeline) -> bool:
    """Return whether capture may trigger this DAG."""
    return pipeline.tables.on_added == "copy" or any_copied(pipeline)


def build(pipeline: Pipeline) -> DAG:
    """Return the DAG of one pipeline."""
    with DAG(
        **dag_arguments(pipeline, "resync", __doc__),
        schedule=[asset(pipeline, "new_tables")] if wakes(pipeline) else None,
        params={
            "tables": tables_param(
                pipeline, "tables to copy again, as schema.table; none means all that wait for a copy"
            ),
            "dry_run": dry_run(),
            "abandon": Param(False, type="boolean", description="end the open rebuilds of these tables instead"),
        },
    ) as dag:

        @task.short_circuit(pool=SOURCE_POOL)
        def look(**context_: Any) -> bool:
            """Say what would be done; bad input, a dry run and abandoning end here."""
            from penstock.flow.load import run as rebuild
            from penstock.flow.load.resync import resync_lines

            params = context_["params"]
            dry = params["dry_run"] and not woken(context_)
            with working(pipeline) as ctx:
                if params["abandon"]:
                    rebuild.abandon(ctx, params["tables"] or [], dry_run=dry)
                    return False
                for line in resync_lines(ctx, params["tables"] or None, woken=woken(context_)):
                    ctx.progress(line)
            return not dry

        def build_again(ctx: Context, context_: Any, submit: Any) -> list[str]:
            """Copy the tables that are named again, or all that wait, and build them next to the old ones."""
            from penstock.flow.load import run as rebuild

            return rebuild.resync(ctx, context_["params"]["tables"] or None, submit, woken=woken(context_))

        look() >> rebuilding(pipeline, build_again)
    return dag


globals().update(dags("resync", build))

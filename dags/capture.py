"""### Take the slot's changes into the landing zone, and let the source free its WAL

**Does** one window of WAL after another until it has caught up or its time budget ends: reconcile slot and ledger,
plan, peek, stage Parquet files and their manifest, and only then advance the slot.

With `capture.every` a run does so again and again, until its time budget ends or the schedule's next run begins, or until
this DAG is paused; in between it holds nothing. It triggers the merge DAG where no run of that is under way.

**Safe to repeat, to clear, to kill.** A window is byte-for-byte repeatable until it is staged; a second run at the
same time finds the pipeline's lock taken and retries. Backfilling this DAG is pointless: state is keyed by
LSN, not by date.

**Tables**: a publication that Penstock made follows the patterns at the start of each run. A table that joined, by
whatever way, wakes `resync`, which copies it; its changes are landed from the start. Columns that are
renamed, dropped or added are followed, and told of by the asset `schema`. A table that changed in a way that neither stream nor metadata
carries is paused and wakes `resync`, too, unless `tables.on_change` is `pause`.

**Keep it unpaused**: while it rests, the slot keeps WAL on the source's disk.

**If it fails:** `slot-ahead`, `slot-lost`, `source-changed` and `publication-missing` halt the pipeline, because
changes may be gone; the message says what was expected and the runbook of the same name says how to recover.
"""

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, task

from penstock.config.model import Pipeline
from penstock.orchestration.assets import alias, asset
from penstock.orchestration.dags import dag_arguments, dags
from penstock.orchestration.tasks import SOURCE_POOL, working


def build(pipeline: Pipeline) -> DAG:
    """Return the DAG of one pipeline."""
    with DAG(
        **dag_arguments(pipeline, "capture", __doc__),
        schedule=pipeline.capture.schedule,
        dagrun_timeout=timedelta(seconds=2 * pipeline.capture.time_budget + pipeline.capture.statement_timeout),
    ) as dag:

        @task(
            pool=SOURCE_POOL,
            outlets=[alias(pipeline, "landed"), alias(pipeline, "tables_joined"), alias(pipeline, "schema_changed")],
        )
        def windows(*, outlet_events: Any, ti: Any) -> dict[str, Any]:
            """Capture windows until caught up, again and again with `capture.every`; emits the merge's asset when something was landed, resync's when tables wait for a copy."""
            from penstock.flow.capture.run import capture_repeatedly
            from penstock.flow.health.run import watch_the_watcher
            from penstock.flow.load.waiting import tables_to_announce
            from penstock.orchestration.assets import tell_of_landing, tell_of_schema
            from penstock.orchestration.notifications import deliver, send_capture
            from penstock.orchestration.other_dags import dag_states, paused, wake_merge

            with working(pipeline) as ctx:
                report = capture_repeatedly(ctx, why_end=lambda: paused(ti), landed=lambda _: wake_merge(ctx, ti))
                watch_the_watcher(ctx, dag_states(ti, pipeline, ["slot_health"]), deliver)
                waiting = tables_to_announce(ctx)
                tell_of_schema(ctx, outlet_events)
                tell_of_landing(ctx, ti, outlet_events, report)
            send_capture(ctx.name, report.summary())
            if waiting:
                outlet_events[alias(pipeline, "tables_joined")].add(
                    asset(pipeline, "new_tables"), extra={"tables": waiting}
                )
            return report.summary()

        windows()
    return dag


globals().update(dags("capture", build))

"""### Prove that source and lake hold the same rows at one exact position, while both continue

**Does** take a snapshot of the source at an exact WAL position X (a temporary slot, which is dropped at once), read the
tables under it, let capture and merge come to X, read the lake at the cut that lies at X, and compare every value by
code that shares nothing with the pipeline. It reports counts, columns and hashes of keys, never a value.

**Runs** at the times of `verify.schedule`, and by hand. With `mode` `sample` every run looks at another `verify.share` of each
table's keys, so that N runs see every row; with `whole` it looks at all rows. `tables` names some; else those
of `verify.tables`.

**A difference pauses nothing.** It opens the alarm `verify-differs` for the table, which closes when that table or share is
next found to be equal; the task `equal` is red. A table that cannot be read keeps no other from being compared: it opens
`verify-unreadable`. With `verify.on_difference: resync` the DAG `resync` is triggered for it.

**Safe to repeat, to clear, to kill.** It changes nothing at the source and in the lake. A second run at the same time is
refused (`work-under-way`). The slot and the snapshot end with the task.

**If it fails:** `verify-late` means that capture or merge did not come to X in time: see that both are unpaused and
run. `no-free-slot`: it needs one replication slot for a moment. `verify-differs`: follow its runbook.
"""

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Param, task

from penstock.config.model import Pipeline
from penstock.orchestration.dags import dag_arguments, dags
from penstock.orchestration.table_choices import tables_param
from penstock.orchestration.tasks import context, working


def build(pipeline: Pipeline) -> DAG:
    """Return the DAG of one pipeline."""
    with DAG(
        **dag_arguments(pipeline, "verify", __doc__),
        schedule=pipeline.verify.schedule,
        params={
            "tables": tables_param(pipeline, "compare these tables, each as schema.table; else those of verify.tables"),
            "mode": Param(
                "sample",
                enum=["sample", "whole"],
                description="the share of each table that is due, or all rows",
            ),
        },
    ) as dag:
        # not in the pool of the source: it reads for long, and captures must not wait for it
        @task(execution_timeout=timedelta(days=1))
        def compare(**context_: Any) -> dict[str, Any]:
            """Compare, record what was found, and send alerts for differences."""
            from penstock.flow.verify import run as flow
            from penstock.orchestration.notifications import deliver
            from penstock.orchestration.other_dags import MergeTrigger

            params, merge = context_["params"], MergeTrigger(context_["ti"], pipeline)
            with working(pipeline) as ctx:
                found = flow.verify(
                    ctx, tables=params["tables"] or (), mode=params["mode"], merge=merge.fire, deliver=deliver
                )
            return found.summary()

        @task(retries=0)
        def equal(summary: dict[str, Any]) -> None:
            """Be red where a table differs or could not be read."""
            from penstock.flow.verify import run as flow

            with working(pipeline):
                flow.require_equal(summary["differing"], summary["lsn"], summary["unread"])

        @task
        def repair(summary: dict[str, Any], **context_: Any) -> None:
            """Let the tables that differ be copied again."""
            from penstock.orchestration.other_dags import trigger

            if summary["differing"]:
                conf = {"tables": summary["differing"], "dry_run": False}
                context(pipeline).progress(trigger(context_["ti"], f"{pipeline.name}.resync", conf))

        found = compare()
        equal(found)
        if pipeline.verify.on_difference == "resync":
            repair(found)
    return dag


globals().update(dags("verify", build))

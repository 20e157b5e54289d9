"""### Bring a pipeline back that has lost its place in the stream: by hand

**Does** nothing but say what was lost and what it would do, until it is triggered with `dry_run` set to false. Then:
merge what is landed -> drop the remains of the slot, if Penstock made it -> new slot with its exported snapshot ->
copy of every table into new tables -> one cut in which the new tables take the names of the old ones.

**For** `slot-missing` (dropped), `slot-lost`, `slot-ahead` (also: dropped and created again by hand), `slot-unusable`,
`publication-missing`, `source-changed` (restored, failed over), for `cuts-unreadable` and `foreign-commit` of the table of cuts (ledger, catalog or
lake were lost or put back), and for a halted pipeline that can be fixed in no other way. A pipeline whose slot can be read on, and whose merges
can go on, is refused with `nothing-to-recover`.

**Meanwhile** the old tables stay readable at their last cut; afterwards they stay in the namespace `_penstock_era<n>`
until maintenance drops them. Leave `capture` and `merge` unpaused: they are skipped until there is a new slot, and capture must
begin then. Rows end up right; the changes in between are in no window, and `penstock status` shows that gap.

**Safe to repeat, to clear, to kill.** Each step looks at what is already there: trigger it again, and finished tables
stay finished.

**If it fails:** `slot-exists` means that a slot of the name is not known to be ours: drop it yourself. A merge of what is
landed that cannot succeed (a landing file is gone) is left out with `merge_first` set to false.
"""

from typing import Any

from airflow.sdk import DAG, Param, task

from penstock.config.model import Pipeline
from penstock.flow.sequences import RECOVERY
from penstock.orchestration.dags import dag_arguments, dags, dry_run
from penstock.orchestration.task_groups import sequence
from penstock.orchestration.tasks import SOURCE_POOL, working


def build(pipeline: Pipeline) -> DAG:
    """Return the DAG of one pipeline."""
    with DAG(
        **dag_arguments(pipeline, "recover", __doc__),
        schedule=None,
        params={
            "dry_run": dry_run(),
            "merge_first": Param(True, type="boolean", description="merge what is landed before the slot is left"),
        },
    ) as dag:

        @task.short_circuit(pool=SOURCE_POOL)
        def look(**context_: Any) -> bool:
            """Say what was lost and what would be done; a dry run ends here."""
            from penstock.flow.recover import run as recover

            with working(pipeline) as ctx:
                return recover.start(ctx, dry_run=context_["params"]["dry_run"])

        look() >> sequence(pipeline, RECOVERY)
    return dag


globals().update(dags("recover", build))

"""### Leave out the one transaction that the source cannot decode: by hand

**Does** nothing but name that transaction and the tables that it touched, until it is triggered with `dry_run` set to false.
Then: captures all before it as usual -> leaves it out, it alone -> pauses the tables that it touched as
`transaction-skipped`. All other tables lose nothing.

**For** a capture that ends with `decoding-limit` because one row is too large, where no setting helps: its runbook shows
how to recognise this case. Where every transaction can be decoded, nothing is left out.

**Afterwards** capture continues by itself. The tables wait for a copy: `resync` makes it, by itself unless `tables.on_change` is
`pause`. Their changelogs say at the transaction's place that it is missing. If another such transaction follows, trigger this
again.

**Safe to repeat, to clear, to kill.** It looks again each time. Until the transaction is left out, in one step, nothing of that is
there. The look takes several times as long as a capture, and holds the work on the slot: captures meanwhile fail with
`work-under-way` and try again.

**If it fails:** `wal-unreadable` means that the server cannot read beyond that place at all: the pipeline is halted, trigger
`recover`. `work-under-way` means that a capture is at work: clear this task when it has ended. `ledger-conflict` means that
another run was faster: trigger it again.
"""

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, task

from penstock.config.model import Pipeline
from penstock.orchestration.dags import dag_arguments, dags, dry_run
from penstock.orchestration.tasks import SOURCE_POOL, working


def build(pipeline: Pipeline) -> DAG:
    """Return the DAG of one pipeline."""
    with DAG(
        **dag_arguments(pipeline, "skip_transaction", __doc__),
        schedule=None,
        params={"dry_run": dry_run()},
    ) as dag:

        @task(pool=SOURCE_POOL, execution_timeout=timedelta(days=1))
        def skip(**context_: Any) -> list[str]:
            """Name the transaction, or leave it out; return what was said."""
            from penstock.flow.capture import skip_transaction as flow

            with working(pipeline) as ctx:
                return flow.skip_or_show(ctx, dry_run=bool(context_["params"]["dry_run"]))

        skip()
    return dag


globals().update(dags("skip_transaction", build))

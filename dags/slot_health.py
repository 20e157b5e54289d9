"""### Watch the slot: warn while there is time, and never let a forgotten slot fill the source's disk

**Does** observe -> judge -> act -> report, in seconds and without a peek: reads slots, statistics, open transactions
and settings of the source, writes samples and alarms into the ledger, sends alerts to the channels of the policy, and
sends gauges. `drain` captures at once, with larger windows, when the own slot is critical and capture is not paused.

**Tells** once for each time of `health.summary` how the pipeline stands, and pings `health.heartbeat` when a run has ended well.

**Drops nothing** until the pipeline's `health.dry_run` is false; until then it shows the statement. Then it drops the
own slot when it is lost, orphaned or beyond its limit (and halts the pipeline, `slot-dropped`), and slots of others
only where a rule of the policy names them. Never an active slot, never one that moved since it was judged.

**Safe to repeat, to clear, to kill.** An alert that was sent is not repeated before its interval; one that was not
is sent by the next run.

**If it fails:** `source-unreachable` is an alarm of its own; `alert-undelivered` means that a channel did not take
an alert. Each open alarm names its page in `docs/runbooks/`.
"""

import logging
from datetime import timedelta
from functools import partial
from typing import Any

from airflow.sdk import DAG, task
from airflow.sdk.exceptions import AirflowSkipException

from penstock.config.model import Pipeline
from penstock.orchestration import notifications
from penstock.orchestration.assets import alias
from penstock.orchestration.dags import dag_arguments, dags
from penstock.orchestration.tasks import SOURCE_POOL, working

log = logging.getLogger("penstock")


def build(pipeline: Pipeline) -> DAG:
    """Return the DAG of one pipeline."""
    budget = 2 * pipeline.capture.time_budget + pipeline.capture.statement_timeout
    arguments = dag_arguments(pipeline, "slot_health", __doc__)
    notice = notifications.AlertNotice(pipeline)
    with DAG(
        **{**arguments, "on_failure_callback": [arguments["on_failure_callback"], notice]},
        schedule=pipeline.health.schedule,
        dagrun_timeout=timedelta(seconds=budget + 600),
    ) as dag:

        @task(pool=SOURCE_POOL)
        def check(**context_: Any) -> dict[str, Any]:
            """Look, judge and act; the report is in the log."""
            from penstock.flow.health import report
            from penstock.flow.health import run as flow
            from penstock.orchestration import table_choices
            from penstock.orchestration.other_dags import dag_states

            with working(pipeline) as ctx:
                done = flow.check(ctx, dag_states(context_["ti"], pipeline), notifications.deliver)
                table_choices.note(ctx)
            notifications.send_gauges(ctx.name, report.gauges(done))
            return {"drain": done.drain, "undelivered": list(done.undelivered)}

        @task(pool=SOURCE_POOL, outlets=[alias(pipeline, "landed")])
        def drain(seen: dict[str, Any], *, outlet_events: Any, ti: Any) -> dict[str, Any]:
            """Capture now, with larger windows, if the slot needs it; triggers merge as capture does."""
            from penstock.flow.health import run as flow
            from penstock.orchestration.assets import tell_of_landing

            if not seen["drain"]:
                raise AirflowSkipException("nothing to drain")
            with working(pipeline) as ctx:
                done = flow.drain(ctx)
                tell_of_landing(ctx, ti, outlet_events, done)
            return done.summary()

        @task(retries=0)
        def delivered(seen: dict[str, Any]) -> None:
            """Fail the run if a channel did not take an alert; else send the summary that is due, and ping the heartbeat."""
            from penstock.flow.health import run as flow
            from penstock.flow.health import summary
            from penstock.orchestration import notifications

            with working(pipeline) as ctx:
                flow.require_delivered(seen["undelivered"])
                summary.send_summary(ctx, partial(notifications.send_info, pipeline))
            for failure in notifications.beat(pipeline):
                log.warning("%s", failure)

        seen = check()
        drain(seen)
        delivered(seen)
    return dag


globals().update(dags("slot_health", build))

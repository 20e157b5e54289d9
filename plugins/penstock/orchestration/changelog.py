"""What a run of the changelog waits for, and the interval that it fills."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator
from airflow.sdk.exceptions import AirflowSensorTimeout, AirflowSkipException

from penstock.errors import LedgerError
from penstock.orchestration.tasks import find_context, outcome

if TYPE_CHECKING:
    from penstock.flow.changelog.coverage import Interval


class WindowsSensor(BaseSensorOperator):
    """Wait until capture has passed the interval's end; between two looks it takes no worker."""

    template_fields = ()

    def __init__(self, *, pipeline: str, **arguments: Any) -> None:
        super().__init__(mode="reschedule", **arguments)
        self.pipeline = pipeline
        self.waiting: str | None = None

    def poke(self, context: Any) -> bool:
        """Return whether the interval can be filled; fails at once on one that never can be."""
        from penstock.flow.changelog import run as changelog

        ctx, wanted = find_context(self.pipeline), interval(context)
        if context["dag_run"].run_type == "scheduled" and changelog.precedes(ctx, wanted):
            raise AirflowSkipException(f"{wanted} was over before {self.pipeline} began")
        self.waiting = changelog.waiting(ctx, wanted)
        if self.waiting is not None:
            ctx.progress(self.waiting)
        return self.waiting is None

    def execute(self, context: Any) -> Any:
        """Wait, and say at the end of patience what did not come."""
        with outcome(find_context(self.pipeline)):
            try:
                return super().execute(context)
            except AirflowSensorTimeout:
                raise LedgerError(
                    "interval-not-captured",
                    f"{self.waiting}, after {self.timeout:.0f} s of waiting; let capture run, then clear this task",
                ) from None


def interval(context: Any) -> Interval:
    """Return what a run is to fill: what its params name, else its data interval; raises LedgerError."""
    from penstock.flow.changelog import coverage

    params = context["params"]
    given = [params.get("from"), params.get("to")]
    if any(given):
        return coverage.parse(*given)
    start, end = context.get("data_interval_start"), context.get("data_interval_end")
    if start is None or end is None or start == end:
        raise LedgerError(
            "interval-invalid",
            "expected a run of the schedule, of a backfill, or the params from and to; this run has none of them: "
            "trigger it with both",
        )
    return coverage.Interval(_plain(start), _plain(end))


def _plain(time: datetime) -> datetime:
    """Return a time of Airflow's as one of Python's own class."""
    return datetime.fromtimestamp(time.timestamp(), UTC)

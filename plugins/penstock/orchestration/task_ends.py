"""How a task ends is noted in the ledger, where slot health reads it: a run that an asset started has no place in Airflow's order of runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from airflow.sdk.exceptions import AirflowRescheduleException, AirflowSkipException

from penstock.conditions import Directive
from penstock.errors import LedgerError, PenstockError
from penstock.flow.context import Context


@contextmanager
def noted_end(ctx: Context, ti: Any) -> Iterator[None]:
    """Note that the block has succeeded, or failed for good; what is tried again, skipped or put off is not its end."""
    try:
        yield
    except (AirflowSkipException, AirflowRescheduleException):
        raise
    except Exception as error:
        if _is_final(error, ti):
            _note(ctx, ti, error)
        raise
    _note(ctx, ti, None)


def _is_final(error: Exception, ti: Any) -> bool:
    retried = not isinstance(error, PenstockError) or error.directive is Directive.RETRY
    return not retried or ti.try_number > ti.max_tries


def _note(ctx: Context, ti: Any, error: Exception | None) -> None:
    verb, run_id = ti.dag_id.removeprefix(f"{ctx.name}."), ti.run_id
    slug = error.slug if isinstance(error, PenstockError) else None
    with suppress(LedgerError):  # the ledger may be what failed; then slot health fails, too
        if error is None:
            last = not ti.task.downstream_task_ids
            ctx.ledger.outcomes.succeeded(ctx.name, verb, ti.task_id, run_id, last=last)
        else:
            ctx.ledger.outcomes.failed(ctx.name, verb, ti.task_id, run_id, slug=slug)

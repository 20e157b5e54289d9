"""How a task ends is noted in the ledger, where slot health reads it: a run that an asset started has no place in Airflow's order of runs."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from airflow.sdk.exceptions import AirflowRescheduleException, AirflowSkipException

from penstock.conditions import Directive
from penstock.errors import LedgerError, PenstockError
from penstock.flow.context import Context
from penstock.orchestration.notifications import send_task


@contextmanager
def noted_end(ctx: Context, ti: Any) -> Iterator[None]:
    """Note that the block has succeeded, or failed for good; what is tried again, skipped or put off is not its end."""
    began, used = time.monotonic(), _cpu_seconds()
    try:
        yield
    except (AirflowSkipException, AirflowRescheduleException):
        raise
    except Exception as error:
        if _is_final(error, ti):
            _note(ctx, ti, error)
        raise
    finally:
        seconds, cpu_seconds = time.monotonic() - began, _cpu_seconds() - used
        send_task(ti.dag_id, ti.task_id, seconds=seconds, cpu_seconds=cpu_seconds)
        with suppress(LedgerError):
            ctx.ledger.outcomes.spent(ctx.name, _verb(ctx, ti), seconds=seconds, cpu_seconds=cpu_seconds)
    _note(ctx, ti, None)


def _cpu_seconds() -> float:
    """Return the CPU that this process has used, and the processes that it has waited for, as Spark's driver."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _is_final(error: Exception, ti: Any) -> bool:
    retried = not isinstance(error, PenstockError) or error.directive is Directive.RETRY
    return not retried or ti.try_number > ti.max_tries


def _verb(ctx: Context, ti: Any) -> str:
    return str(ti.dag_id).removeprefix(f"{ctx.name}.")


def _note(ctx: Context, ti: Any, error: Exception | None) -> None:
    verb, run_id = _verb(ctx, ti), ti.run_id
    slug = error.slug if isinstance(error, PenstockError) else None
    with suppress(LedgerError):  # the ledger may be what failed; then slot health fails, too
        if error is None:
            last = not ti.task.downstream_task_ids
            ctx.ledger.outcomes.succeeded(ctx.name, verb, ti.task_id, run_id, last=last)
        else:
            ctx.ledger.outcomes.failed(ctx.name, verb, ti.task_id, run_id, slug=slug)

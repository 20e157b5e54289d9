"""What work on one table came to, with what it counted: its result, or the error that concerns this table alone."""

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from pyspark.sql import SparkSession

from penstock.jobs.plans import TableResult
from penstock_spark.failures import OwnFailureError, reason_to_pause

_log = logging.getLogger("penstock.table")


def outcome(
    session: SparkSession,
    idle: TableResult,
    landed: Collection[str],
    counts: Mapping[str, int],
    work: Callable[[], TableResult],
) -> TableResult:
    """Do the work on a table that read these landed files; an error that concerns this table alone is part of the result.

    Any other ends the application. `idle` is what a table without work reports, `counts` what outlives an error.
    """
    started = time.monotonic()
    try:
        done = work()
    except Exception as raised:
        error = reason_to_pause(raised, session, ".".join(idle.target), landed)
        if error is None:
            raise
        kept = replace(idle, snapshot_id=None, paused_slug=error.slug, paused_reason=error.message)
        done = replace(kept, failure=error.cause if isinstance(error, OwnFailureError) else None)
    done = replace(done, counts={**idle.counts, **counts}, seconds=round(time.monotonic() - started, 3))
    _log_end(done)
    return done


def _log_end(done: TableResult) -> None:
    name = ".".join(done.target)
    if done.paused_slug:
        _log.error("%s: paused after %.1f s: [%s] %s", name, done.seconds, done.paused_slug, done.paused_reason)
    else:
        summary = ", ".join(f"{count} {what}" for what, count in done.counts.items() if count) or "nothing to do"
        _log.info("%s: %s, %.1f s", name, summary, done.seconds)

"""The rule for the event trigger at the source, where the pipeline asks for it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.flow.health.findings import Case, Finding


def ddl_trigger(case: Case) -> Iterator[Finding]:
    """Report a trigger that does not write what capture would read."""
    seen = case.seen.seen
    if seen.ddl_trigger is None or seen.ddl_trigger.problem is None:
        return
    database = seen.server.database
    said = f"source.ddl_trigger is on for database {database}, but {seen.ddl_trigger.problem}"
    step = (
        f"columns are followed as without it; a superuser runs what `penstock ddl-trigger {case.seen.pipeline}` prints"
    )
    numbers = {"condition": seen.ddl_trigger.condition, "version": seen.ddl_trigger.version}
    yield Finding("ddl-trigger-missing", database, "warn", said, step, numbers)

"""The rule for tables of which the source refuses updates or deletes because they are published. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.flow.health.findings import Case, Finding
from penstock.source.refusals import by_table, explained


def refused(case: Case) -> Iterator[Finding]:
    """Report each published table that an ALTER TABLE, or an upgrade of the server, has made refuse the application's changes."""
    record = case.seen.known.record
    if record is None or record.state == "torn_down":
        return
    for found in by_table(case.seen.seen.refused).values():
        reason, step = explained(found)
        table, name = found[0].table, record.publication
        said = f"the source refuses updates or deletes of {table}, because publication {name} publishes it: {reason}"
        numbers = {"relations": [f"{each.schema}.{each.name}" for each in found]}
        yield Finding("no-usable-identity", table, "critical", said, f"{step}; or take it out of {name}", numbers)

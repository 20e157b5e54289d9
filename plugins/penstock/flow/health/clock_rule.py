"""The rule for the clocks of source, ledger and this worker: times of one are compared with those of another. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.flow.health.findings import Case, Finding
from penstock.jobs.clocks import TOLERANCE_SECONDS
from penstock.units import span


def clocks(case: Case) -> Iterator[Finding]:
    """Report clocks that differ from the ledger's."""
    ledger, source = case.seen.now.ledger_clock, case.seen.source_clock
    if ledger is None:
        return
    yield from _apart("worker", "this worker's clock", (0.0, 0.0), ledger.ahead)
    if source is not None:
        yield from _apart("source", "the source's clock", source.ahead, ledger.ahead)


def _apart(subject: str, what: str, clock: tuple[float, float], ledger: tuple[float, float]) -> Iterator[Finding]:
    """Report a clock that is apart from the ledger's, however long the questions took."""
    ahead, behind = clock[0] - ledger[1], ledger[0] - clock[1]
    seconds = max(ahead, behind)
    if seconds <= TOLERANCE_SECONDS:
        return
    said = f"{what} is {span(seconds)} {'ahead of' if ahead > 0 else 'behind'} the ledger's"
    step = "freshness, changelogs and retention compare their times; set the clock that is wrong"
    yield Finding("clocks-differ", subject, "warn", said, step, {"seconds": round(ahead if ahead > 0 else -behind)})

"""Which of the findings follow from others: one cause, one message. Pure.

`FOLLOWS` says what follows from what: that is named in the alert of its cause and sends none of its own. Both stay open alarms:
the page shows them all, and what still lasts when its cause is over is sent then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from penstock.conditions import LEVELS, PAGED
from penstock.ledger.health import AlarmRecord, Finding

_QUEUE = frozenset({"slot-retained", "slot-unread", "slot-stalled"})
_CAPTURE = _QUEUE | {"lake-stale"}
FOLLOWS: dict[str, frozenset[str]] = {
    "source-unreachable": _CAPTURE | {"capture-failing", "verify-overdue"},
    "slot-lost": frozenset({"pipeline-halted", "capture-failing", "lake-stale"}),
    "slot-missing": frozenset({"pipeline-halted", "capture-failing", "lake-stale"}),
    "slot-synced": _CAPTURE | {"capture-failing"},
    "pipeline-halted": _CAPTURE | {"capture-failing", "capture-paused"},
    "capture-paused": _CAPTURE,
    "capture-failing": _CAPTURE,
    "capture-too-slow": frozenset({"slot-unread", "lake-stale"}),
    "storage-nearly-full": frozenset({"merge-failing", "maintain-overdue"}),
    "merge-paused": frozenset({"lake-stale"}),
    "merge-failing": frozenset({"lake-stale"}),
    "merge-late": frozenset({"lake-stale"}),
    "publication-narrow": frozenset({"table-paused"}),
    "resync-failing": frozenset({"copy-stalled"}),
}
"""What follows from a cause, the causes that explain more first."""
SAME_SUBJECT = {"verify-differs": frozenset({"divergence-suspected"})}
"""The same, of one table."""


def inhibited(findings: Sequence[Finding], alarms: Iterable[AlarmRecord] = ()) -> list[Finding]:
    """Return the findings, each with its cause or with what follows from it; a cause is as bad as the worst of these.

    `alarms` are the open ones: an error that has paged is the cause of its own DAG's failing.
    """
    paged = [alarm for alarm in alarms if alarm.slug in PAGED and alarm.closed_at is None]
    causes = {id(finding): _root(finding, findings, paged) for finding in findings}
    return [_with(finding, causes[id(finding)], findings, causes) for finding in findings]


def _root(finding: Finding, findings: Sequence[Finding], paged: Sequence[AlarmRecord]) -> Finding | str | None:
    """Return what a finding follows from in the end."""
    found: Finding | None = None
    seen = {id(finding)}
    at = finding
    while (cause := _cause(at, findings)) is not None and id(cause) not in seen:
        found = at = cause
        seen.add(id(cause))
    of_task = f"{at.subject}."
    alarm = next((a for a in paged if at.slug.endswith("-failing") and a.subject.startswith(of_task)), None)
    return f"{alarm.slug} {alarm.subject}" if alarm else found


def _cause(finding: Finding, findings: Sequence[Finding]) -> Finding | None:
    for slug, follow in FOLLOWS.items():
        if finding.slug in follow and (cause := next((each for each in findings if each.slug == slug), None)):
            return cause
    same = (
        each for each in findings if each.subject == finding.subject and finding.slug in SAME_SUBJECT.get(each.slug, ())
    )
    return next(same, None)


def _with(
    finding: Finding,
    cause: Finding | str | None,
    findings: Sequence[Finding],
    causes: dict[int, Finding | str | None],
) -> Finding:
    if cause is not None:
        return replace(finding, cause=cause if isinstance(cause, str) else cause.title)
    following = [each for each in findings if causes[id(each)] is finding]
    worst = max((finding, *following), key=lambda each: LEVELS.index(each.level)).level
    return replace(finding, level=worst, follows=tuple(f"{each.slug}: {each.message}" for each in following))

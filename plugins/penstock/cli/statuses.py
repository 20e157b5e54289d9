"""The exit statuses of every verb, in one table: a script can tell what to do next without reading the message."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from penstock.conditions import Directive
from penstock.errors import PenstockError


class Status(IntEnum):
    """Name an exit status."""

    DONE = 0
    CRASHED = 1
    USAGE = 2
    REFUSED = 3
    FOUND = 4
    RETRY = 5
    DECIDE = 6
    INTERRUPTED = 130


MEANINGS = {
    Status.DONE: "done; what was looked at is as it should be",
    Status.CRASHED: "an error that Penstock does not know: its traceback is printed, please report it",
    Status.USAGE: "the command line is wrong: an unknown verb or option, no pipeline",
    Status.REFUSED: "the call was refused and nothing was changed: a pipeline file, a connection, a name, the wrong time",
    Status.FOUND: "the verb looked, and found something: an error of `check` or `validate`, an alarm of `health` or `status`, a difference of `verify`",
    Status.RETRY: "it did not succeed this time, nothing is lost: run it again later",
    Status.DECIDE: "a pipeline is halted, a table is paused, or another thing waits for a person: the message names the runbook",
    Status.INTERRUPTED: "Ctrl-C: run it again to continue",
}
"""What each status means, for the page of commands."""
PLAN_MIGRATION = {
    0: "free: the lake follows without a copy",
    1: "tables are copied again",
    2: "tables pause, or the lake loses data",
    3: "nothing can be said, whatever the reason",
}
"""The one verb with statuses of its own: a verdict for CI."""
NOT_TRIED = 3
_OF_DIRECTIVE = {Directive.RETRY: Status.RETRY, Directive.FAIL: Status.REFUSED}
_FINDINGS = ("verify-differs", "verify-unreadable")
_BY_URGENCY = (Status.DONE, Status.FOUND, Status.RETRY, Status.REFUSED, Status.DECIDE)


def status_of(error: PenstockError) -> Status:
    """Return the status with which a verb ends that met this error."""
    if error.slug in _FINDINGS:
        return Status.FOUND
    return _OF_DIRECTIVE.get(error.directive, Status.DECIDE)


def worst(statuses: Iterable[Status]) -> Status:
    """Return the most urgent of some pipelines' statuses."""
    return max(statuses, key=_BY_URGENCY.index, default=Status.DONE)

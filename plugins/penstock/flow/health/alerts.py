"""When an alarm sends an alert, and in which words. Pure.

It sends one when it opens, when it rises from warn to critical, at its level's interval while it lasts, and once when
it ends, if its beginning was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from penstock.conditions import ALARMS, LEVELS, Level, runbook
from penstock.ledger.health import AlarmRecord
from penstock.policy import Critical, Health, Warn
from penstock.quantities import span

Happening = Literal["opened", "raised", "lasts", "closed"]


@dataclass(frozen=True, slots=True)
class Alert:
    """Hold what is said about one alarm, and on which channels."""

    pipeline: str
    alarm: AlarmRecord
    happening: Happening
    level: Level
    channels: tuple[str, ...]
    runbook: str
    at: datetime

    @property
    def title(self) -> str:
        """Return one line with the most important."""
        closed = "closed" if self.happening == "closed" else self.level.upper()
        return f"[penstock] {closed}: {self.alarm.slug} {self.alarm.subject} ({self.pipeline})"

    def text(self, page: str | None = None) -> str:
        """Return what, since when, the numbers, what comes next, and where to read on."""
        alarm = self.alarm
        end = alarm.closed_at or self.at
        lasted = f"{alarm.opened_at:%F %T} UTC, for {span((end - alarm.opened_at).total_seconds())}"
        state = f"closed at {end:%F %T} UTC" if self.happening == "closed" else self.level
        numbers = ", ".join(f"{name} {value}" for name, value in alarm.numbers.items() if name != "next")
        found = [
            ("what", alarm.message),
            ("level", state),
            ("since", lasted),
            ("numbers", numbers),
            ("next", "" if self.happening == "closed" else str(alarm.numbers.get("next", ""))),
            ("gets worse", "" if self.happening == "closed" else ALARMS[alarm.slug].worsens),
            ("runbook", self.runbook),
            ("page", page or ""),
        ]
        return "\n".join(f"{name}: {value}" for name, value in found if value)


@dataclass(frozen=True, slots=True)
class Delivery:
    """Say how many channels took an alert, and what the others complained of, without an address."""

    taken: int = 0
    failures: tuple[str, ...] = ()


Deliver = Callable[[Alert], Delivery]


def alerts(pipeline: str, alarms: Sequence[AlarmRecord], policy: Health, now: datetime) -> list[Alert]:
    """Return the alerts that these alarms send now, the worst first."""
    due = [alert for alarm in alarms if (alert := _alert(pipeline, alarm, policy, now))]
    return sorted(due, key=lambda alert: -LEVELS.index(alert.level))


def of_level(policy: Health, level: Level) -> Warn | Critical:
    """Return what the policy says of a level."""
    return policy.warn if level == "warn" else policy.critical


def _alert(pipeline: str, alarm: AlarmRecord, policy: Health, now: datetime) -> Alert | None:
    happening = _happening(alarm, policy, now)
    if happening is None:
        return None
    level = alarm.last_notified_level or alarm.level if happening == "closed" else alarm.level
    channels = tuple(of_level(policy, level).channels)
    return Alert(pipeline, alarm, happening, level, channels, link(policy, alarm.slug), now)


def link(policy: Health, slug: str) -> str:
    """Return where a runbook is to be read."""
    return f"{policy.runbooks.rstrip('/')}/{slug}.md" if policy.runbooks else runbook(slug)


def _happening(alarm: AlarmRecord, policy: Health, now: datetime) -> Happening | None:
    sent_at, level = alarm.last_notified_at, alarm.last_notified_level
    if alarm.closed_at is not None:
        return "closed"
    if sent_at is None or level is None:
        return "opened"
    if LEVELS.index(alarm.level) > LEVELS.index(level):
        return "raised"
    return "lasts" if (now - sent_at).total_seconds() >= of_level(policy, alarm.level).repeat else None

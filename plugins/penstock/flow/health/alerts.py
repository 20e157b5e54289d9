"""When an alarm sends an alert, and in which words. Pure.

It sends one when it opens, when it rises from warn to critical, at its level's interval while it lasts, and once when
it ends, if its beginning was sent. What stands in the alert of its cause sends none; alarms of one kind that are due at once
share one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from penstock.conditions import LEVELS, Level
from penstock.config.policy import Critical, Health, Warn
from penstock.flow.health.links import Links
from penstock.ledger.health import AlarmRecord, Finding
from penstock.printable import printable
from penstock.units import sentence, size, span

Happening = Literal["opened", "raised", "lasts", "closed"]
HOLD_SECONDS = 900
"""What has lost its cause is told only if it lasts so long after: most of it ends soon."""
_NAMED = 10
_OTHER_LINES = frozenset({"next", "since", "follows", "dag", "run_id", "task", "place"})
_BYTES = frozenset({"unread", "retained", "safe_wal_size", "warn", "critical"})
_RATES = frozenset({"written_per_second", "read_per_second"})
_SPANS = frozenset({"seconds", "timeout", "pause", "idle", "longest_window"})


@dataclass(frozen=True, slots=True)
class Alert:
    """Hold what is said about an alarm, or about several of one kind (`others`), and on which channels."""

    alarm: AlarmRecord
    happening: Happening
    level: Level
    channels: tuple[str, ...]
    at: datetime
    others: tuple[AlarmRecord, ...] = ()
    links: Links = field(default_factory=Links)

    @property
    def alarms(self) -> tuple[AlarmRecord, ...]:
        """Return all alarms that it speaks of."""
        return (self.alarm, *self.others)

    @property
    def runbook(self) -> str:
        """Return where the runbook is to be read."""
        return self.links.runbook(self.alarm.slug)

    @property
    def title(self) -> str:
        """Return one line with the most important."""
        closed = "closed" if self.happening == "closed" else self.level.upper()
        more = f" and {len(self.others)} more" if self.others else ""
        return printable(f"[penstock] {closed}: {self.alarm.slug} {self.alarm.subject}{more} ({self.alarm.pipeline})")

    def text(self) -> str:
        """Return what, since when, the numbers, what comes next, and where to read on."""
        return "\n".join(printable(f"{name}: {value}") for name, value in self._lines() if value)

    def _lines(self) -> Iterator[tuple[str, str]]:
        alarm, over = self.alarm, self.happening == "closed"
        for each in self.alarms[:_NAMED]:
            yield "what", sentence(each.message)
        if len(self.alarms) > _NAMED:
            yield "what", f"and {len(self.alarms) - _NAMED} more"
        end = alarm.closed_at or self.at
        yield "level", f"closed at {end:%F %T} UTC" if over else self.level
        if alarm.number:
            yield "since", f"{alarm.opened_at:%F %T} UTC, for {span((end - alarm.opened_at).total_seconds())}"
        yield "numbers", "" if self.others else _numbers(alarm.numbers)
        if not over:
            for each in alarm.numbers.get("follows", ()):
                yield "follows", sentence(str(each))
            yield "next", sentence(str(alarm.numbers.get("next", "")))
            yield "gets worse", alarm.worsens
        yield "runbook", self.runbook
        if not over:
            yield from self._ways()
        yield "page", self.links.page(self.alarm.pipeline)

    def _ways(self) -> Iterator[tuple[str, str]]:
        dag_id, failed = self.alarm.dag, self.alarm.failed
        if dag_id:
            yield "DAG", f"{dag_id} {self.links.dag(dag_id)}".strip()
        if failed:
            yield "run", self.links.run(failed["dag"], failed["run_id"]) or failed["run_id"]
            yield "log", self.links.log(failed["dag"], failed["run_id"], failed["task"]) if failed["task"] else ""


def _numbers(numbers: Mapping[str, Any]) -> str:
    """Return an alarm's numbers as a person reads them; what another line says is left out."""
    shown = [
        f"{name.removesuffix('_bytes').removesuffix('_seconds').replace('_', ' ')} {_number(name, value)}"
        for name, value in numbers.items()
        if name not in _OTHER_LINES and value is not None
    ]
    return ", ".join(shown)


def _number(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return " ".join(map(str, value))
    if not isinstance(value, (int, float)):
        return str(value)
    if name in _RATES:
        return f"{size(value)}/s"
    if name.endswith("_bytes") or name in _BYTES:
        return size(value)
    return span(value) if name.endswith("_seconds") or name in _SPANS else f"{value:,}"


@dataclass(frozen=True, slots=True)
class Delivery:
    """Say how many channels took an alert, and what the others complained of, without an address."""

    taken: int = 0
    failures: tuple[str, ...] = ()


Deliver = Callable[[Alert], Delivery]


def no_delivery(_: Alert) -> Delivery:
    """Send no alert: the event and the log line are all."""
    return Delivery()


def alerts(alarms: Sequence[AlarmRecord], policy: Health, now: datetime) -> list[Alert]:
    """Return the alerts that these alarms send now, the worst first."""
    links = Links(published=policy.runbooks)
    due: dict[tuple[str, Happening, Level], list[AlarmRecord]] = {}
    for alarm in sorted(alarms, key=lambda alarm: alarm.number):
        if happening := _happening(alarm, policy, now):
            level = alarm.last_notified_level or alarm.level if happening == "closed" else alarm.level
            due.setdefault((alarm.slug, happening, level), []).append(alarm)
    found = [
        Alert(first, happening, level, tuple(of_level(policy, level).channels), now, tuple(others), links)
        for (_, happening, level), (first, *others) in due.items()
    ]
    return sorted(found, key=lambda alert: -LEVELS.index(alert.level))


def unrecorded(pipeline: str, found: Finding, policy: Health, at: datetime) -> Alert:
    """Return the alert of what no ledger has on record, as if it had just been opened there."""
    channels = tuple(of_level(policy, found.level).channels)
    links = Links(published=policy.runbooks)
    return Alert(found.alarm(pipeline, at), "opened", found.level, channels, at, links=links)


def of_level(policy: Health, level: Level) -> Warn | Critical:
    """Return what the policy says of a level."""
    return policy.warn if level == "warn" else policy.critical


def _happening(alarm: AlarmRecord, policy: Health, now: datetime) -> Happening | None:
    sent_at, level = alarm.last_notified_at, alarm.last_notified_level
    if alarm.closed_at is not None:
        return "closed"
    if alarm.cause is not None:
        return None
    if sent_at is None or level is None:
        freed = alarm.freed_at is not None and (now - alarm.freed_at).total_seconds() < HOLD_SECONDS
        return None if freed else "opened"
    if LEVELS.index(alarm.level) > LEVELS.index(level):
        return "raised"
    return "lasts" if (now - sent_at).total_seconds() >= of_level(policy, alarm.level).repeat else None

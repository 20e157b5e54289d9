"""What a rule is given and what it says: one finding is one alarm that should be open now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from penstock.conditions import Level
from penstock.config.policy import Health
from penstock.flow.health.limits import Forecast, Limits, level_of
from penstock.flow.health.observe import Observation
from penstock.ledger.health import SlotSample


@dataclass(frozen=True, slots=True)
class Finding:
    """Say that an alarm should be open: what, since when, the numbers, and what will happen next."""

    slug: str
    subject: str
    level: Level
    message: str
    next: str
    numbers: Mapping[str, Any] = field(default_factory=dict)
    since: datetime | None = None
    follows: tuple[str, ...] = ()
    """What follows from it, and is told with it."""
    cause: str | None = None
    """The alarm that names this one."""


@dataclass(frozen=True, slots=True)
class Case:
    """Hold all that a rule may look at; `own` is None where the server has no slot of the pipeline's name."""

    seen: Observation
    policy: Health
    limits: Limits
    samples: Mapping[str, SlotSample]
    forecast: Forecast

    @property
    def own(self) -> SlotSample | None:
        """Return what is known of the pipeline's slot."""
        own = self.seen.own
        return None if own is None else self.samples.get(own.name)

    def level(self, slug: str, subject: str, value: float, warn: float, critical: float | None = None) -> Level | None:
        """Return the level that a number has reached, with the policy's hysteresis."""
        held = self.seen.held(slug, subject)
        return level_of(value, warn, critical, held=held, hysteresis=self.policy.hysteresis)

    def age(self, since: datetime | None) -> float:
        """Return the seconds since a time."""
        return 0.0 if since is None else (self.seen.at - since).total_seconds()

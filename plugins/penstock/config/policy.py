"""What an operator wants of slot health: limits, who gets alerts how often, and what may be dropped.

These models are the section `health` of a pipeline file. Nothing is dropped while `dry_run` is true, and no slot
of another consumer unless a rule names it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import model_validator

from penstock.config.validators import Channel, Cron, Heartbeat, Shape, WebAddress
from penstock.units import Bytes, Number, Seconds, Section, Share, count, size, span

Count = Annotated[int, count(1, (1 << 31) - 1)]


class _Level(Section):
    bytes: Bytes | None = None
    """The limit, where it is smaller than the share of the WAL budget."""
    channels: list[Channel] = []
    """Airflow connections with apprise URLs in their password; `<connection>:<tag>` takes those of one tag."""


class Warn(_Level):
    """Say when a person should know, and how often."""

    share: Share = 0.25
    repeat: Seconds = 86400


class Info(Section):
    """Say who hears of what needs nobody: changes of tables' shapes that the lake follows."""

    channels: list[Channel] = []


class Critical(_Level):
    """Say when a person must act, and how often to repeat it."""

    share: Share = 0.5
    repeat: Seconds = 3600


class Watch(Section):
    """Bound what else is watched."""

    unchanged_schedules: Count = 3
    """The confirmed position stood still over so many pauses of capture."""
    transaction: Seconds = 3600
    """A transaction that has written, or is prepared, is open for longer."""
    catalog_age: Count = 50_000_000
    """Transactions since the slot's catalog_xmin; four times as many are critical."""
    spill_share: Share = 0.5
    """Part of the decoded bytes that the server wrote to disk first."""
    free_slots: Count = 2
    """Fewer free slots or WAL senders than this."""
    abandoned: Seconds = 86400
    """A slot that is not ours has been inactive for longer."""
    stalled_copy: Seconds = 6 * 3600
    """A copy or rebuild under way has landed no part of a table, and built none, for longer."""
    free_share: Share = 0.1
    """Less than this part of the landing zone's or the lake's disk is free; a quarter of it is critical."""


class Freshness(Section):
    """Say how far the lake may be behind the source's time."""

    warn: Seconds | None = None
    """Left out: three pauses between captures, half an hour at least."""
    critical: Seconds | None = None
    """Left out: four times `warn`."""


class ForeignRule(Section):
    """Name slots of others that may be dropped; all conditions must hold."""

    name: Annotated[str, Shape(".+", "the name of a slot, or a pattern such as test_*")]
    """A pattern in which `*` matches any characters."""
    inactive: Seconds
    retained: Bytes
    type: Literal["logical", "physical"] = "logical"
    database: str | None = None
    """Left out: the pipeline's own database (a physical slot has none)."""


class Drop(Section):
    """Say which slots may be dropped."""

    own: bool = True
    """The pipeline's own slot when lost, orphaned or beyond its limit."""
    patience: Seconds = 900
    """The own slot must have been beyond the limit for so long."""
    foreign: list[ForeignRule] = []


class Health(Section):
    """Say how the slot is watched, who gets alerts, and what may be done."""

    schedule: Cron | None = "*/5 * * * *"
    dry_run: bool = True
    """Only show which slot would be dropped, with the statement."""
    drain: bool = True
    """Capture at once, with larger windows, when the own slot is critical and capture is not paused."""
    disk: Bytes | None = None
    """What WAL may take on the source's disk: PostgreSQL does not know how much is free."""
    hysteresis: Annotated[float, Number("a number from 0 to less than 1, such as 0.1", 0, 1, below=True)] = 0.1
    """An alarm closes when its number is below the limit by this part."""
    keep: Seconds = 30 * 86400
    """Samples and closed alarms are kept so long."""
    runbooks: WebAddress | None = None
    """Where the runbooks are published: `<this>/<slug>.md` is put into alerts."""
    summary: Cron | None = "0 8 * * *"
    """Tell the channels of `info` at these times how the pipeline stands and what was done."""
    heartbeat: Heartbeat | None = None
    """Each healthy run of slot health pings this address, or sends to this channel; the address is a secret."""
    freshness: Freshness = Freshness()
    info: Info = Info()
    warn: Warn = Warn()
    critical: Critical = Critical()
    watch: Watch = Watch()
    drop: Drop = Drop()

    @property
    def without_channel(self) -> tuple[str, ...]:
        """Return the levels of which no person is notified, because they have no channel or slot health has no schedule."""
        levels = {"warn": self.warn.channels, "critical": self.critical.channels}
        return tuple(level for level, channels in levels.items() if not channels or self.schedule is None)

    @model_validator(mode="after")
    def _warn_comes_first(self) -> Health:
        warn, critical, freshness = self.warn, self.critical, self.freshness
        for key, first, after, limit, shown in (
            ("warn.share", warn.share, "critical.share", critical.share, str),
            ("warn.bytes", warn.bytes, "critical.bytes", critical.bytes, size),
            ("freshness.warn", freshness.warn, "freshness.critical", freshness.critical, span),
        ):
            if first and limit and first > limit:
                raise ValueError(f"{key}: expected at most health.{after}, which is {shown(limit)}")
        return self

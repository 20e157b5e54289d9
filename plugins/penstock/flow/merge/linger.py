"""Linger: merge again as captures land changes, in the Spark application that is there, until nothing came for a while.

Each round is a merge like any other: its own attempt, plan, result and cut, under the lake's lock. Between two rounds the
lock is free. Whatever else wants to work ends the lingering: a merge begun elsewhere, a halt, maintenance at work.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from penstock.errors import ConfigError, LedgerError, PenstockError
from penstock.flow.context import Context
from penstock.flow.health.alerts import Deliver
from penstock.flow.merge.due import due
from penstock.flow.merge.kept_spark import POLL_SECONDS, KeptSpark
from penstock.flow.merge.lake_lock import WORK
from penstock.flow.merge.plan import Cut, plan
from penstock.flow.merge.publish import publish
from penstock.flow.spark_job import Submit
from penstock.ledger.records import CutRecord
from penstock.polling import poll
from penstock.units import several

OLDEST_SECONDS = 3600.0
"""An application is kept for an hour at most: the next one has a changed pipeline file, new logins and a fresh heap."""
_PATIENCE_SECONDS = 30.0
"""So long a round waits for the lake's lock: what takes longer than that, such as maintenance, ends the lingering."""
_BREATH_SECONDS = 1.5
"""So long the lake's lock is free between two rounds; who waits for it looks every second."""

Published = Callable[[CutRecord], None]
WhyEnd = Callable[[], str | None]


def _ignore(_: CutRecord) -> None:
    return None


@dataclass
class Lingering:
    """Merge what is due, and then what follows within `merge.linger` of the last cut.

    `published` hears of every cut; `why_end` may end the lingering between two cuts by a reason; `deliver` is that of
    `publish`.
    """

    ctx: Context
    submit: Submit
    published: Published = _ignore
    why_end: WhyEnd = lambda: None
    deliver: Deliver | None = None
    cuts: int = field(default=0, init=False)
    _until: datetime = field(default=datetime.min, init=False)

    def run(self, *, force: bool = False) -> int:
        """Return the number of cuts; raises what `plan`, Spark and `publish` raise, and LedgerError("work-under-way")."""
        begun = time.monotonic()
        with KeptSpark(self.ctx, self.submit, renewed=self._note) as spark:
            try:
                cut = self._round(spark, wait=self.ctx.pipeline.lake.wait, force=force)
                while cut is not None and time.monotonic() - begun < OLDEST_SECONDS:
                    cut = self._next(spark, cut)
            finally:
                with suppress(LedgerError):
                    self.ctx.ledger.work.forget_spark(self.ctx.name)
        return self.cuts

    def _round(self, spark: KeptSpark, *, wait: float, force: bool = False) -> CutRecord | None:
        with self.ctx.ledger.locks.hold(self.ctx.name, WORK, wait=wait):
            attempt = plan(self.ctx, Cut(force=force))
            if attempt is None:
                return None
            spark.carry_out(attempt)
            cut = publish(self.ctx, attempt, deliver=self.deliver)
        self.cuts += 1
        self.published(cut)
        return cut

    def _next(self, spark: KeptSpark, cut: CutRecord) -> CutRecord | None:
        """Return the next cut, or None where the lingering ends."""
        try:
            reason = self._await_due(spark, cut)
        except PenstockError as error:  # nothing is under way: the next run says what is wrong
            reason = str(error)
        if reason is None:
            try:
                return self._round(spark, wait=_PATIENCE_SECONDS)
            except LedgerError as error:
                if error.slug not in ("work-under-way", "pipeline-halted"):
                    raise
                reason = error.message
        self.ctx.progress(f"ending the Spark application after {several(self.cuts, 'cut')}: {reason}")
        return None

    def _await_due(self, spark: KeptSpark, cut: CutRecord) -> str | None:
        """Return None when another merge is due, or why there is to be none in this application."""
        ctx, linger = self.ctx, self.ctx.pipeline.merge.linger or 0
        checked = cut.lsn
        self._until = datetime.now(UTC) + timedelta(seconds=linger)
        self._note()
        ctx.progress(f"keeping the Spark application for {linger} s: {several(self.cuts, 'cut')} so far")
        time.sleep(_BREATH_SECONDS)
        with ctx.ledger.session():
            for _ in poll(linger, POLL_SECONDS):
                spark.renew()
                if spark.ended:
                    return "it has ended by itself"
                if reason := self.why_end():
                    return reason
                known = ctx.ledger.pipelines.get(ctx.name)
                if known.state != "running":
                    return f"the pipeline is {known.state}"
                if known.merge_attempt != cut.attempt:
                    return f"another merge has begun: {known.merge_attempt}"
                if known.position is not None and known.position > checked:
                    checked = known.position
                    if due(ctx):
                        return None
        return f"nothing was due for {linger} s"

    def _note(self) -> None:
        """Tell whoever looks at the pipeline that an application is kept; what keeps it from being told ends nothing."""
        if self.cuts:
            with suppress(LedgerError):
                self.ctx.ledger.work.keep_spark(self.ctx.name, until=self._until, cuts=self.cuts)


def lingers(ctx: Context) -> bool:
    """Return whether the pipeline keeps its merge's Spark application."""
    return ctx.pipeline.merge.linger is not None


def require_linger(ctx: Context) -> None:
    """Raise ConfigError("config-invalid") where the pipeline file names no `merge.linger`."""
    if not lingers(ctx):
        raise ConfigError("config-invalid", "expected the pipeline file to have merge.linger, such as 5m, it has none")

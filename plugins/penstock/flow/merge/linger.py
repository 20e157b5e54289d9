"""Linger: merge again as captures land changes, in the Spark application that is there, until nothing came for a while.

Each round is a merge like any other: its own attempt, plan, result and cut, under the lake's lock. Between two rounds the
lock is free. Whatever else wants to work ends the lingering: a merge begun elsewhere, a halt, maintenance at work.

The application carries out one plan after the other, while a thread of this process waits for its end. It is ordered through a file
of the landing zone, which both sides reach however Spark is deployed. When this process ends, or is killed, the file is not renewed
any more and the application ends by itself.
"""

import contextvars
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Self

from penstock.errors import ConfigError, LakeError, LedgerError, PenstockError
from penstock.flow.context import Context
from penstock.flow.health.alerts import Deliver
from penstock.flow.merge.attempts import LAKE, job, watched
from penstock.flow.merge.due import due
from penstock.flow.merge.publish import publish
from penstock.flow.merge.run import plan
from penstock.flow.spark_job import SparkJob, Submit, named_error
from penstock.jobs.driver import RENEWED_SECONDS, Orders
from penstock.landing import layout
from penstock.ledger.records import CutRecord
from penstock.polling import poll
from penstock.units import several

_POLL_SECONDS = 0.2
_END_SECONDS = 120.0
"""So long an application is given to end after it was told to."""
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


class KeptSpark:
    """Submit an application for the first attempt, and order the following ones of the same.

    `renewed` is called with each sign of life.
    """

    def __init__(self, ctx: Context, submit: Submit, *, renewed: Callable[[], None]) -> None:
        self._ctx, self._submit, self._tell = ctx, submit, renewed
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._orders = Orders()
        self._file = ""
        self._renewed = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the application and wait for it, not for ever; one that does not hear of it runs out of patience."""
        if self._thread is None:
            return
        with suppress(LakeError):
            self._write(replace(self._orders, end=True))
        self._thread.join(_END_SECONDS)

    @property
    def ended(self) -> bool:
        """Return whether the application has ended by itself."""
        return self._thread is not None and not self._thread.is_alive()

    def carry_out(self, attempt: str) -> None:
        """Return when Spark's result of this attempt is in the landing zone; raises the error by which the driver ended."""
        if self._thread is None:
            self._start(attempt)
        else:
            self._order(attempt)
        result = layout.result_file(self._ctx.name, attempt)
        with watched(self._ctx, attempt):
            for _ in poll(pause=_POLL_SECONDS):
                ended = self.ended
                if self._ctx.landing.exists(result):
                    return
                if ended:
                    raise self._failure(attempt)
                self.renew()

    def renew(self) -> None:
        """Give the application a sign of life, where it is time; raises LakeError("landing-unwritable")."""
        if self._thread is not None and time.monotonic() - self._renewed >= RENEWED_SECONDS:
            self._write(replace(self._orders, sign=self._orders.sign + 1))
            self._tell()

    def _start(self, attempt: str) -> None:
        self._file = layout.orders_file(self._ctx.name, attempt)
        self._write(self._orders)
        application, inherited = job(self._ctx, attempt, orders=self._file), contextvars.copy_context()
        self._thread = threading.Thread(
            target=inherited.run, args=(self._run, application), name="spark-submit", daemon=True
        )
        self._thread.start()

    def _run(self, application: SparkJob) -> None:
        try:
            self._submit(application)
        except BaseException as error:  # raised again by whoever waits for a result
            self._error = error

    def _order(self, attempt: str) -> None:
        ctx, orders = self._ctx, self._orders
        self._write(
            replace(
                orders,
                sign=orders.sign + 1,
                number=orders.number + 1,
                plan=ctx.landing.uri(layout.plan_file(ctx.name, attempt)),
                result=ctx.landing.uri(layout.result_file(ctx.name, attempt)),
            )
        )

    def _write(self, orders: Orders) -> None:
        self._ctx.landing.write_text(self._file, orders.dumps())
        self._orders, self._renewed = orders, time.monotonic()

    def _failure(self, attempt: str) -> BaseException:
        named = named_error(self._ctx.landing, layout.plan_file(self._ctx.name, attempt))
        ended = f"expected the kept Spark application to carry out attempt {attempt}, but it has ended"
        return named or self._error or LakeError("spark-failed", ended)


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
        with self.ctx.ledger.locks.hold(self.ctx.name, LAKE, wait=wait):
            attempt = plan(self.ctx, force=force)
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
            for _ in poll(linger, _POLL_SECONDS):
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

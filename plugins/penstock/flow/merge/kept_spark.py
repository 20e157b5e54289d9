"""A Spark application that carries out one plan after the other, while a thread of this process waits for its end.

It is ordered through a file of the landing zone, which both sides reach however Spark is deployed. When this process
ends, or is killed, the file is not renewed any more and the application ends by itself.
"""

import contextvars
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Self

from penstock.errors import LakeError
from penstock.flow.context import Context
from penstock.flow.merge.attempts import watched
from penstock.flow.spark_job import SparkJob, Submit, catalog_secrets, describe, named_error
from penstock.jobs.driver import RENEWED_SECONDS, Orders
from penstock.landing import layout
from penstock.polling import poll

POLL_SECONDS = 0.2
_END_SECONDS = 120.0
"""So long an application is given to end after it was told to."""


class KeptSpark:
    """Submit an application for the first attempt, and order the following ones of the same.

    `renewed` is called with each sign of life.
    """

    def __init__(self, ctx: Context, submit: Submit, *, renewed: Callable[[], None] = lambda: None) -> None:
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
            for _ in poll(pause=POLL_SECONDS):
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
        job, inherited = merge_job(self._ctx, attempt, orders=self._file), contextvars.copy_context()
        self._thread = threading.Thread(target=inherited.run, args=(self._run, job), name="spark-submit", daemon=True)
        self._thread.start()

    def _run(self, job: SparkJob) -> None:
        try:
            self._submit(job)
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


def merge_job(ctx: Context, attempt: str, *, orders: str | None = None) -> SparkJob:
    """Describe the application that carries out an attempt, and then what the file `orders` says."""
    plan, result = layout.plan_file(ctx.name, attempt), layout.result_file(ctx.name, attempt)
    return describe(ctx, "merge_changes", plan, catalog_secrets(ctx), result=result, orders=orders)

"""How far a task is, noted in the ledger while it works, where the page reads it."""

from __future__ import annotations

import time
from contextlib import suppress
from functools import cached_property

from penstock.errors import PenstockError
from penstock.flow.context import Context
from penstock.ledger import Ledger

EVERY_SECONDS = 2.0


class WorkNotes:
    """Take what `Context.stage` takes; a ledger that does not take a note stops nothing."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._noted: dict[str, float] = {}

    @cached_property
    def _ledger(self) -> Ledger:
        """A ledger with connections of its own, and none before the first note: a note must be seen while the task's transaction is open."""
        ctx = self._ctx
        return Ledger(ctx.connections(ctx.pipeline.ledger.connection), ctx.task)

    def __call__(self, what: str, done: int, total: int, rows: int | None = None, /) -> None:
        """Note how far a work is: its beginning, then every other second, and that it is over."""
        name, task, now = self._ctx.name, self._ctx.task, time.monotonic()
        with suppress(PenstockError):
            if done >= total:
                if self._noted.pop(what, None) is not None:
                    self._ledger.work.forget(name, task, what=what)
                return
            if not self._noted:
                self._ledger.work.forget(name, task)
            if now - self._noted.get(what, -EVERY_SECONDS) < EVERY_SECONDS:
                return
            self._noted[what] = now
            self._ledger.work.note(name, task, what=what, done=done, total=total, rows=rows)

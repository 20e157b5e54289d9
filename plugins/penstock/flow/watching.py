"""How far a work is that another process does: looked at every other second, for whoever watches."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from penstock.errors import LakeError
from penstock.flow.context import Context

EVERY_SECONDS = 2.0
Done = tuple[int, int, int | None]
"""How much is done, how much it is, and the rows done where they are counted: what `ctx.stage` takes."""


@contextmanager
def watched(ctx: Context, what: str, look: Callable[[], Done | None]) -> Iterator[None]:
    """Tell `ctx.stage` how far a work is for as long as the block runs, and that it is done after it.

    `look` returns None before there is anything to see; a zone that does not answer stops nothing.
    """
    if not ctx.is_watched:
        yield
        return
    over, total = threading.Event(), 0

    def note() -> None:
        nonlocal total
        with suppress(LakeError):
            if (found := look()) is not None:
                done, total, rows = found
                ctx.stage(what, done, total, rows)

    def keep_noting() -> None:
        while not over.wait(EVERY_SECONDS):
            note()

    note()
    watcher = threading.Thread(target=keep_noting, name=f"penstock: {what}", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
    ctx.stage(what, total, total)

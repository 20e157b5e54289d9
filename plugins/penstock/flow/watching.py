"""Looking every other second how far a work is that another process does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from penstock.errors import LakeError

EVERY_SECONDS = 2.0


@contextmanager
def watching(poll: Callable[[], None], name: str) -> Iterator[None]:
    """Poll time and again for as long as the block runs; a zone that does not answer stops nothing."""
    over = threading.Event()

    def keep_polling() -> None:
        while not over.is_set():
            with suppress(LakeError):
                poll()
            over.wait(EVERY_SECONDS)

    watcher = threading.Thread(target=keep_polling, name=name, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()

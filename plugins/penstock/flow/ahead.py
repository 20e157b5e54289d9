"""Run an iterator in a thread of its own, a few items ahead of whoever consumes it.

Two of these around a decoder make pulling, decoding and writing overlap. The queue is short, so memory stays
bounded; an exception of the producer is raised at the consumer; a consumer that stops early stops the producer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import TypeVar

Item = TypeVar("Item")
_POLL_SECONDS = 0.2


class _End:
    def __init__(self, error: BaseException | None) -> None:
        self.error = error


def ahead(items: Iterable[Item], depth: int = 2) -> Iterator[Item]:
    """Yield the items in order while a thread produces up to `depth` of them in advance."""
    queue: Queue[Item | _End] = Queue(depth)
    stopped = Event()
    thread = Thread(target=_produce, args=(items, queue, stopped), name="ahead", daemon=True)
    thread.start()
    try:
        while True:
            item = queue.get()
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
            yield item
    finally:
        stopped.set()
        with suppress(Empty):  # make room for a producer that waits to put
            queue.get_nowait()
        thread.join()


def _produce(items: Iterable[Item], queue: Queue[Item | _End], stopped: Event) -> None:
    iterator = iter(items)
    error: BaseException | None = None
    try:
        for item in iterator:
            _put(queue, item, stopped)
            if stopped.is_set():
                break
    except BaseException as raised:  # handed to the consumer, which raises it
        error = raised
    finally:
        close = getattr(iterator, "close", None)
        if close is not None:
            close()
        _put(queue, _End(error), stopped)


def _put(queue: Queue[Item | _End], item: Item | _End, stopped: Event) -> None:
    while not stopped.is_set():
        with suppress(Full):
            queue.put(item, timeout=_POLL_SECONDS)
            return

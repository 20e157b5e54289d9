"""Run an iterator in a thread of its own, a few items ahead of whoever consumes it.

Two of these around a decoder make pulling, decoding and writing overlap. The queue is short, and heavy items are not made
ahead at all, so memory stays bounded; an exception of the producer is raised at the consumer; a consumer that stops early
stops the producer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from queue import Empty, Full, Queue
from threading import Condition, Event, Thread
from typing import TypeVar

Item = TypeVar("Item")
_POLL_SECONDS = 0.2


class _End:
    def __init__(self, error: BaseException | None) -> None:
        self.error = error


class _Load:
    """Count what the items weigh that were made and are not done with."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._weight = 0
        self._changed = Condition()

    def add(self, weight: int) -> None:
        """Count one more item, or with a negative weight one less."""
        with self._changed:
            self._weight += weight
            self._changed.notify()

    def await_room(self, stopped: Event) -> None:
        """Wait until all that is there weighs no more than the limit, or the reader has stopped."""
        with self._changed:
            while self._weight > self._limit and not stopped.is_set():
                self._changed.wait(_POLL_SECONDS)


def prefetch(
    items: Iterable[Item], depth: int = 2, *, weigh: Callable[[Item], int] = lambda _: 0, limit: int = 0
) -> Iterator[Item]:
    """Yield the items in order while a thread produces up to `depth` of them in advance.

    It produces none while those that wait and the one that the consumer has weigh more than `limit` by `weigh`. The consumer
    has one until it asks for the next; if it releases it before, only one heavy item is in memory at a time.
    """
    queue: Queue[Item | _End] = Queue(depth)
    stopped, load = Event(), _Load(limit)
    thread = Thread(target=_produce, args=(items, queue, stopped, load, weigh), name="ahead", daemon=True)
    thread.start()
    try:
        while True:
            item = queue.get()
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
            weight = weigh(item)
            yield item
            del item
            load.add(-weight)
    finally:
        stopped.set()
        with suppress(Empty):  # make room for a producer that waits to put
            queue.get_nowait()
        thread.join()


def _produce(
    items: Iterable[Item], queue: Queue[Item | _End], stopped: Event, load: _Load, weigh: Callable[[Item], int]
) -> None:
    iterator = iter(items)
    error: BaseException | None = None
    try:
        for item in iterator:
            load.add(weigh(item))
            _put(queue, item, stopped)
            del item  # it is the consumer's alone: two heavy ones would be there when the next is made
            load.await_room(stopped)
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

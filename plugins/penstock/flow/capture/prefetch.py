"""Run an iterator in a thread of its own, a few items ahead of whoever consumes it.

Two of these around a decoder make pulling, decoding and writing overlap. Few items wait, and heavy ones are not made
ahead at all, so memory stays bounded; an exception of the producer is raised at the consumer; a consumer that stops early
stops the producer.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Condition
from typing import TypeVar, cast

Item = TypeVar("Item")
_END = object()


class _Load:
    """Count what the items weigh that were made and are not done with."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._weight = 0
        self._changed = Condition()
        self.is_over = False

    def add(self, weight: int, *, is_over: bool = False) -> None:
        """Count one more item, or with a negative weight one less; when it `is_over` nobody waits for room any more."""
        with self._changed:
            self._weight += weight
            self.is_over |= is_over
            self._changed.notify()

    def await_room(self) -> None:
        """Wait until all that is there weighs no more than the limit, or all is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._weight <= self._limit or self.is_over)


def prefetch(
    items: Iterable[Item], depth: int = 2, *, weigh: Callable[[Item], int] = lambda _: 0, limit: int = 0
) -> Generator[Item, None, None]:
    """Yield the items in order while a thread produces some of them in advance: `depth`, and the one that it is about to make.

    It produces none while those that wait and the one that the consumer has weigh more than `limit` by `weigh`. The consumer
    has one until it asks for the next; if it releases it before, only one heavy item is in memory at a time. Who stops early closes it.
    """
    iterator, load = iter(items), _Load(limit)

    def make() -> object:
        load.await_room()
        item = _END if load.is_over else next(iterator, _END)
        if item is not _END:
            load.add(weigh(cast(Item, item)))
        return item

    maker = ThreadPoolExecutor(1, thread_name_prefix="ahead")
    waiting = deque(maker.submit(make) for _ in range(depth + 1))
    try:
        while (item := waiting.popleft().result()) is not _END:
            waiting.append(maker.submit(make))
            weight = weigh(cast(Item, item))
            yield cast(Item, item)
            del item  # it is the consumer's alone: two heavy ones would be there when the next is made
            load.add(-weight)
    finally:
        load.add(0, is_over=True)
        maker.shutdown(cancel_futures=True)
        close = getattr(iterator, "close", None)
        if close is not None:
            close()

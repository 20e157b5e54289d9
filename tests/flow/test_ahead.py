"""An iterator that runs ahead in its own thread."""

import threading
from collections.abc import Iterator

import pytest

from penstock.flow.ahead import ahead


def test_items_come_in_order() -> None:
    assert list(ahead(range(100))) == list(range(100))


def test_an_error_of_the_producer_is_raised_at_the_consumer_after_the_items_before_it() -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise KeyError("broken pipe")

    seen: list[int] = []
    with pytest.raises(KeyError, match="broken pipe"):
        seen.extend(ahead(failing()))

    assert seen == [1]


def test_the_producer_is_never_more_than_its_depth_ahead() -> None:
    produced: list[int] = []

    def counting() -> Iterator[int]:
        for number in range(50):
            produced.append(number)
            yield number

    lead = [len(produced) - item for item in ahead(counting(), depth=2)]

    assert max(lead) <= 5  # two in the queue, one being put, one just taken, one just made


def test_a_consumer_that_stops_early_stops_and_closes_the_producer() -> None:
    closed = threading.Event()

    def endless() -> Iterator[int]:
        try:
            number = 0
            while True:
                number += 1
                yield number
        finally:
            closed.set()

    items = ahead(endless())
    assert next(items) == 1
    items.close()  # type: ignore[attr-defined]

    assert closed.is_set()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ahead")]


def test_two_layers_overlap_and_pass_an_error_through_both() -> None:
    def failing() -> Iterator[int]:
        yield from range(3)
        raise ValueError("at the source")

    with pytest.raises(ValueError, match="at the source"):
        list(ahead(number + 1 for number in ahead(failing())))

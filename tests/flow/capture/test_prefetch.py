"""An iterator that runs ahead in its own thread."""

import threading
from collections.abc import Iterator

import pytest

from penstock.flow.capture.window import prefetch


def test_items_come_in_order() -> None:
    assert list(prefetch(range(100))) == list(range(100))


def test_an_error_of_the_producer_is_raised_at_the_consumer_after_the_items_before_it() -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise KeyError("broken pipe")

    seen: list[int] = []
    with pytest.raises(KeyError, match="broken pipe"):
        seen.extend(prefetch(failing()))

    assert seen == [1]


def test_the_producer_is_never_more_than_its_depth_ahead() -> None:
    produced: list[int] = []

    def counting() -> Iterator[int]:
        for number in range(50):
            produced.append(number)
            yield number

    lead = [len(produced) - item for item in prefetch(counting(), depth=2)]

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

    items = prefetch(endless())
    assert next(items) == 1
    items.close()  # type: ignore[attr-defined]

    assert closed.is_set()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ahead")]


def test_two_layers_overlap_and_pass_an_error_through_both() -> None:
    def failing() -> Iterator[int]:
        yield from range(3)
        raise ValueError("at the source")

    with pytest.raises(ValueError, match="at the source"):
        list(prefetch(number + 1 for number in prefetch(failing())))


def test_a_heavy_item_is_made_only_when_the_one_before_it_is_done_with_and_gone() -> None:
    class Heavy:
        there = 0

        def __init__(self) -> None:
            Heavy.there += 1
            most.append(Heavy.there)

        def __del__(self) -> None:
            Heavy.there -= 1

    def making() -> Iterator[Heavy]:
        for _ in range(20):
            yield Heavy()

    most: list[int] = []
    for item in prefetch(making(), weigh=lambda _: 2, limit=1):
        assert isinstance(item, Heavy)
        del item

    assert (len(most), max(most)) == (20, 1)


def test_light_items_are_made_ahead_as_far_as_the_queue_is_long() -> None:
    produced: list[int] = []
    ready = threading.Event()

    def counting() -> Iterator[int]:
        for number in range(50):
            produced.append(number)
            if number == 3:
                ready.set()
            yield number

    items = prefetch(counting(), weigh=lambda _: 1, limit=10)
    assert next(items) == 0
    assert ready.wait(60), "nothing was made ahead of the first"
    assert list(items) == list(range(1, 50))


def test_a_consumer_that_stops_at_a_heavy_item_stops_the_producer_that_waits_for_room() -> None:
    items = prefetch(iter(range(9)), weigh=lambda _: 2, limit=1)
    assert next(items) == 0
    items.close()  # type: ignore[attr-defined]

    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ahead")]

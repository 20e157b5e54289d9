"""What an application that is kept hears, and when it stops to listen."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from penstock.jobs import driver
from penstock.jobs.driver import PATIENCE_SECONDS, Orders


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def follow(file: Iterator[str], clock: Clock) -> Iterator[Orders]:
    return driver.follow(lambda: next(file), clock=clock, sleep=clock.sleep)


def test_every_plan_is_carried_out_once_and_in_order_until_the_end_is_ordered() -> None:
    first = Orders(sign=1, number=1, plan="one")
    second = Orders(sign=3, number=2, plan="two")
    said = [Orders(), first, first, replace(first, sign=2), second, second, replace(second, end=True)]

    assert [order.plan for order in follow(iter([each.dumps() for each in said]), Clock())] == ["one", "two"]


def test_an_application_whose_orders_are_not_renewed_ends_by_itself() -> None:
    clock = Clock()

    assert list(follow((Orders(sign=7).dumps() for _ in count()), clock)) == []
    assert PATIENCE_SECONDS <= clock.now < 2 * PATIENCE_SECONDS


def test_a_file_that_cannot_be_read_is_no_sign_of_life_and_ends_nothing_at_once() -> None:
    clock, answered = Clock(), Orders(sign=1, number=1, plan="one")

    def reads() -> Iterator[str]:
        yield from ["{", "", answered.dumps()[:9], answered.dumps()]
        while True:
            yield "gone"

    assert [order.plan for order in follow(reads(), clock)] == ["one"]
    assert clock.now >= PATIENCE_SECONDS


def test_the_time_that_an_order_takes_is_not_held_against_whoever_ordered() -> None:
    clock, heard = Clock(), []
    said = (Orders(sign=number, number=min(number, 3), plan=str(number), end=number > 3).dumps() for number in count())

    for order in follow(said, clock):
        heard.append(order.plan)
        clock.sleep(100 * PATIENCE_SECONDS)

    assert heard == ["1", "2", "3"]

"""A window takes as much WAL as fits into its time: never more than the ceiling, and in the end all there is."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from penstock.flow.capture.next_window import FIRST, LEAST, MIB, window_bytes
from penstock.ledger.windows import WindowPace

CEILING = 1024 * MIB
SECONDS = 30.0


def taking(read: int, seconds: float) -> WindowPace:
    """Return a window for which the server read so many bytes."""
    return WindowPace(read, read, seconds)


taken = st.builds(taking, st.integers(0, 1 << 40), st.floats(0.001, 1e5))


@dataclass
class Source:
    """Read WAL at so many bytes a second, and remember as many windows as capture looks at."""

    rate: float
    fixed: float = 0.0
    windows: list[WindowPace] = field(default_factory=list)

    def window(self, left: int, *, reread: int = 0, ceiling: int = CEILING) -> int:
        size = window_bytes(self.windows[:-9:-1], reread=reread, ceiling=ceiling, seconds=SECONDS)
        assert size > 0
        size = min(size, left)
        self.windows.append(taking(reread + size, self.fixed + (reread + size) / self.rate))
        return size

    def drain(self, backlog: int, *, ceiling: int = CEILING) -> list[int]:
        sizes = []
        while backlog:
            sizes.append(self.window(backlog, ceiling=ceiling))
            backlog -= sizes[-1]
        return sizes


@given(st.lists(taken, max_size=8), st.integers(0, 1 << 40), st.integers(1, 1 << 40), st.floats(1, 1e5))
def test_it_is_never_more_than_the_ceiling_and_never_nothing(
    recent: list[WindowPace], reread: int, ceiling: int, seconds: float
) -> None:
    size = window_bytes(recent, reread=reread, ceiling=ceiling, seconds=seconds)

    assert min(LEAST, ceiling) <= size <= ceiling


@given(st.floats(0.2 * MIB, 1000 * MIB), st.floats(0, 5))
def test_all_but_the_first_windows_of_a_steady_source_fit(rate: float, fixed: float) -> None:
    source = Source(rate, fixed)
    source.drain(8 * 1024 * MIB)
    first, *others = source.windows

    assert first.read_bytes == FIRST
    assert max(window.seconds for window in others) <= SECONDS + fixed


def test_a_window_grows_to_the_ceiling_where_it_fits_and_doubles_on_its_way() -> None:
    assert [size // MIB for size in Source(500 * MIB).drain(3072 * MIB)] == [128, 256, 512, 1024, 1024, 128]


@given(st.integers(1, 200), st.floats(10 * MIB, 1000 * MIB))
def test_ticks_that_reach_the_end_of_the_wal_do_not_let_a_burst_be_taken_at_once(ticks: int, rate: float) -> None:
    source = Source(rate, fixed=0.5)
    for _ in range(ticks):
        source.window(10_000)

    assert source.window(CEILING) == FIRST


@given(st.floats(2, 50))
def test_a_source_that_has_become_slower_makes_one_long_window_at_most(factor: float) -> None:
    source = Source(100 * MIB)
    source.drain(8 * 1024 * MIB)
    source.rate /= factor
    before = len(source.windows)
    source.drain(2 * 1024 * MIB)
    slow = source.windows[before:]

    assert sum(window.seconds > SECONDS + 0.001 for window in slow) <= 1
    assert slow[0].seconds <= SECONDS * factor


@given(st.floats(1 * MIB, 200 * MIB))
def test_what_an_open_transaction_holds_back_is_not_read_over_and_over(rate: float) -> None:
    source, backlog, behind = Source(rate), 4096 * MIB, 0
    while behind < backlog:
        behind += source.window(backlog - behind, reread=behind, ceiling=backlog)

    assert sum(window.read_bytes for window in source.windows) <= 4 * backlog + 64 * FIRST

"""Both sides of a share: the server's condition and the lake's filter choose the same rows, whatever the type."""

import itertools
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from penstock.compare.rows import within
from penstock.flow.verify.sampling import turn
from penstock.ledger.verifications import KeyShare
from penstock.lsn import Lsn
from penstock.source.text_rows import KeyRange, LeadingKey

MISFITS = pa.map_(pa.string(), pa.string())


def chosen(values: pa.Array, part: KeyRange, misfits: list[str | None] | None = None) -> list[int]:
    numbers = pa.array(range(len(values)))
    kept = pa.array([[("k", text)] if text else None for text in misfits or [None] * len(values)], MISFITS)
    batch = pa.record_batch([values, numbers, kept], names=["k", "number", "_misfits"])
    return within(batch, part).column("number").to_pylist()


def ranges(bounds: list[str], type: str, *, indexed: bool = True) -> list[KeyRange]:
    ends = [None, *bounds, None]
    return [KeyRange("k", type, indexed, lower, upper) for lower, upper in itertools.pairwise(ends)]


@pytest.mark.parametrize(
    ("values", "type", "bounds"),
    [
        (pa.array([5, -3, 10, 7, None], pa.int64()), "bigint", ["0", "7"]),
        (pa.array(["b", "B", "ä", "", None]), "text", ["B", "b"]),
        (pa.array([datetime(2020, 1, n, tzinfo=UTC) for n in (1, 2, 3, 4)], pa.timestamp("us", "UTC")),
         "timestamp with time zone", ["2020-01-02 00:00:00+00", "2020-01-03 12:00:00.5+00"]),
    ],
)  # fmt: skip
def test_every_row_is_in_exactly_one_share(values: pa.Array, type: str, bounds: list[str]) -> None:
    for indexed in (True, False):
        found = [chosen(values, part) for part in ranges(bounds, type, indexed=indexed)]
        assert sorted(number for share in found for number in share) == list(range(len(values)))
        assert len([share for share in found if share]) > 1


def test_a_value_that_the_lake_cannot_hold_is_in_the_share_at_its_end() -> None:
    values = pa.array([datetime(2020, 1, 5), None, None, None, None], pa.timestamp("us"))
    misfits = [None, "infinity", "-infinity", "0044-03-15 00:00:00 BC", "10000-01-01 00:00:00"]
    low, middle, high = ranges(["2020-01-01 00:00:00", "2020-02-01 00:00:00"], "timestamp without time zone")

    assert chosen(values, low, misfits) == [2, 3]
    assert chosen(values, middle, misfits) == [0]
    assert chosen(values, high, misfits) == [1, 4]


def test_a_row_without_a_key_which_no_source_has_is_in_the_first_share() -> None:
    values = pa.array([1, None, 9], pa.int32())
    low, high = ranges(["5"], "integer")

    assert (chosen(values, low), chosen(values, high)) == ([0, 1], [2])


@pytest.mark.parametrize(
    ("type", "lake_type", "bytewise", "alike"),
    [
        ("integer", "int", None, True),
        ("uuid", "string", None, True),
        ("numeric", "decimal(10,2)", None, True),
        ("numeric", "string", None, False),
        ("text", "string", True, True),
        ("text", "string", False, False),
        ("character", "string", True, False),
        ("double precision", "double", None, False),
        ("inet", "string", None, False),
    ],
)
def test_only_types_that_both_sides_order_alike_are_read_by_their_index(
    type: str, lake_type: str, bytewise: bool | None, alike: bool
) -> None:
    assert LeadingKey(1, "k", type, bytewise).ordered_alike(lake_type) is alike


def share(number: int, *, seen: bool, differs: bool = False) -> KeyShare:
    at = datetime(2026, 11, 20 - number, tzinfo=UTC) if seen or differs else None
    return KeyShare(1, number, 4, 4, "k", "integer", True, None, None, Lsn(5) if seen else None, at, differs)


def test_the_next_share_comes_with_the_one_that_differs_and_was_not_looked_at_for_longest() -> None:
    shares = [share(1, seen=True, differs=True), share(2, seen=True, differs=True), share(3, seen=False)]

    assert [each.share for each in turn(shares)] == [3, 2]
    assert [each.share for each in turn(shares[2:])] == [3]
    assert [each.share for each in turn([share(1, seen=False, differs=True)])] == [1], "once, not twice"


def test_the_ends_of_a_share_are_not_in_its_text_form() -> None:
    assert "secret" not in repr(KeyShare(1, 1, 2, 2, "k", "text", True, None, "secret", None, None, False))
    assert "secret" not in repr(KeyRange("k", "text", True, None, "secret"))

"""The list of the longest files names files that are there."""

from tests.order import HERE, LONGEST


def test_every_file_that_is_sorted_to_the_front_exists_and_is_named_once() -> None:
    assert [name for name in LONGEST if not (HERE / name).is_file()] == []
    assert len(set(LONGEST)) == len(LONGEST)

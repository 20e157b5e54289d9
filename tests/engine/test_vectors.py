"""Deletion vectors as bytes: PyIceberg reads ours, and what is damaged, or does not fit the rows, is refused."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile
from pyroaring import BitMap

from penstock.engine import vectors
from penstock.engine.failure import EngineFailure
from penstock.engine.files import Files
from penstock.engine.order import TargetFile, Vector

LAKE = Files().lake
POSITIONS = st.sets(st.one_of(st.integers(0, 300), st.integers(0, (1 << 31) - 1)), min_size=1, max_size=50)


def matched(*places: tuple[int, int]) -> dict[int, BitMap]:
    return {file: BitMap(position for each, position in places if each == file) for file, _ in places}


@pytest.mark.slow
@given(POSITIONS)
@settings(deadline=None)
def test_a_vector_is_read_as_it_was_written(positions: set[int]) -> None:
    assert set(vectors.decode(vectors.encode(BitMap(positions)))) == positions


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1), POSITIONS, min_size=1, max_size=4))
@settings(deadline=None)
def test_pyiceberg_reads_the_vectors_of_every_data_file(wanted: dict[str, set[int]]) -> None:
    content, _ = vectors.encode_file({path: BitMap(positions) for path, positions in wanted.items()})

    found = deletion_vectors_from_puffin_file(PuffinFile(content))

    assert {each.referenced_data_file: set(each.to_vector().to_pylist()) for each in found} == wanted


def test_a_vector_holds_what_was_gone_before_and_what_goes_now(tmp_path: Path) -> None:
    target = (TargetFile("/a", 10), TargetFile("/b", 10), TargetFile("/c", 10))
    folder = tmp_path / "new"

    found = vectors.write_vectors(LAKE, str(folder), target, matched((2, 9), (0, 3), (2, 0)), {2: BitMap([5])})

    rows = {each.data_file: set(vectors.read_vector(LAKE, each.vector)) for each in found}
    assert rows == {"/a": {3}, "/c": {0, 5, 9}}
    assert [each.file_bytes for each in found] == 2 * [next(folder.iterdir()).stat().st_size]


@pytest.mark.parametrize(
    ("places", "reason"),
    [([(0, 10)], "beyond"), ([(0, 5)], "goes twice")],
    ids=["beyond the file's rows", "gone before"],
)
def test_a_place_that_is_no_row_of_its_file_is_refused(
    tmp_path: Path, places: list[tuple[int, int]], reason: str
) -> None:
    with pytest.raises(EngineFailure, match=reason):
        vectors.write_vectors(LAKE, f"{tmp_path}/x", (TargetFile("/a", 10),), matched(*places), {0: BitMap([5])})

    assert not list(tmp_path.iterdir())


def test_a_place_that_is_named_twice_is_refused() -> None:
    going = BitMap([3])

    with pytest.raises(EngineFailure, match="goes twice"):
        vectors.add(going, np.array([2, 3], np.int64))


def test_a_lookup_holds_what_its_bitmap_holds() -> None:
    holds = vectors.lookup(BitMap([0, 7, 8, 41]), 42)

    held = holds(np.arange(42))

    assert np.flatnonzero(held).tolist() == [0, 7, 8, 41]


@pytest.mark.parametrize(
    "damage",
    [
        lambda blob: blob[:-1] + bytes([blob[-1] ^ 1]),
        lambda blob: blob[:30] + bytes([blob[30] ^ 1]) + blob[31:],
        lambda blob: blob[:6] + b"x" + blob[7:],
        lambda blob: blob[:20],
        lambda blob: b"",
    ],
    ids=["another checksum", "another position", "another magic", "cut", "nothing"],
)
def test_a_damaged_vector_is_refused(tmp_path: Path, damage: object) -> None:
    assert callable(damage)
    blob = damage(vectors.encode(BitMap([1, 2, 70_000])))
    (tmp_path / "x").write_bytes(blob)

    with pytest.raises(EngineFailure, match="deletion vector") as caught:
        vectors.read_vector(LAKE, Vector(f"{tmp_path}/x", 0, len(blob), 3))
    assert caught.value.unreadable


def test_a_vector_that_is_gone_or_has_another_number_of_rows_is_refused(tmp_path: Path) -> None:
    blob = vectors.encode(BitMap([1, 2]))
    (tmp_path / "x").write_bytes(blob)

    for vector in (Vector(f"{tmp_path}/gone", 0, 10, 1), Vector(f"file:{tmp_path}/x", 0, len(blob), 3)):
        with pytest.raises(EngineFailure) as caught:
            vectors.read_vector(LAKE, vector)
        assert caught.value.unreadable

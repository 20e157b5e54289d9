import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.lsn import Lsn

positions = st.integers(0, (1 << 64) - 1).map(Lsn)


@given(positions)
def test_a_position_is_read_back_from_both_of_its_forms(lsn: Lsn) -> None:
    assert Lsn.parse(str(lsn)) == lsn
    assert int(lsn.hex16, 16) == lsn


@given(positions, positions)
def test_hexadecimal_names_sort_as_positions_do(one: Lsn, other: Lsn) -> None:
    assert (one.hex16 < other.hex16) == (one < other)


@pytest.mark.parametrize(
    ("text", "value"),
    [("0/0", 0), ("16/B374D848", 0x16B374D848), ("0/16b3748", 0x16B3748), ("FFFFFFFF/FFFFFFFF", (1 << 64) - 1)],
)
def test_the_server_s_form_is_read(text: str, value: int) -> None:
    assert Lsn.parse(text) == value


@pytest.mark.parametrize(
    "text",
    ["", "0", "/", "0/", "/0", "g/0", "0/0 ", " 0/0", "0/0\n", "0-0", "123456789/0", "0/123456789", "-1/0", "0x1/0"],
)
def test_any_other_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="an LSN must look like 16/B374D848"):
        Lsn.parse(text)


@pytest.mark.parametrize("value", [-1, 1 << 64])
def test_a_position_fits_64_unsigned_bits(value: int) -> None:
    with pytest.raises(ValueError, match=f"must fit 64 unsigned bits, got {value}"):
        Lsn(value)


def test_it_is_shown_as_the_server_shows_it() -> None:
    lsn = Lsn(0x16B374D848)

    assert (str(lsn), repr(lsn), f"{lsn}", f"{lsn:>14}") == (
        "16/B374D848",
        "Lsn(16/B374D848)",
        "16/B374D848",
        "   16/B374D848",
    )
    assert lsn.hex16 == "00000016B374D848"


def test_the_distance_between_positions_is_a_number_of_bytes() -> None:
    distance = Lsn.parse("1/0") - Lsn.parse("0/FFFFFFFF")

    assert (distance, type(distance)) == (1, int)


def test_it_travels_as_a_number_in_json_and_as_itself_in_pickle() -> None:
    lsn = Lsn.parse("16/B374D848")

    assert json.dumps({"lsn": lsn}) == f'{{"lsn": {int(lsn)}}}'
    copied = pickle.loads(pickle.dumps(lsn))
    assert (copied, type(copied)) == (lsn, Lsn)

"""The digest of a window: the same for the same history however it is cut, another for any other."""

from dataclasses import replace

import pyarrow as pa
import pytest

from penstock.errors import ProtocolError
from penstock.lsn import Lsn
from penstock.wire import messages as m
from penstock.wire.batch import StreamDigest
from tests.wire.encoder import encode

TABLE = m.Relation(1, "s", "t", "d", (m.RelationColumn("id", 23, -1, True), m.RelationColumn("note", 25, -1, False)))
OTHER = replace(TABLE, oid=2, name="u")
BEGIN = m.Begin(Lsn(0x100), 700_000_000_000_000, 900)
COMMIT = m.Commit(Lsn(0x100), Lsn(0x130), 700_000_000_000_000)
ROW = (m.Text("1"), m.Text("one"))
HISTORY = [
    encode(message)
    for message in (
        BEGIN,
        TABLE,
        m.Insert(TABLE, ROW),
        OTHER,
        m.Insert(OTHER, ROW),
        m.Delete(TABLE, m.OldKey(ROW)),
        COMMIT,
    )
]
LEFT_OUT = [number for number, message in enumerate(HISTORY) if message[:1] == b"R"]


def digest(*batches: list[bytes]) -> str:
    made = StreamDigest()
    for _ in made.passing(pa.array(batch, pa.binary()) for batch in batches):
        pass
    return made.text("any")


@pytest.mark.parametrize("cut", range(len(HISTORY) + 1))
def test_where_a_batch_ends_makes_no_difference(cut: int) -> None:
    assert digest(HISTORY[:cut], HISTORY[cut:]) == digest(HISTORY)


@pytest.mark.parametrize("place", range(1, len(HISTORY)))
def test_a_relation_that_the_server_repeats_makes_no_difference(place: int) -> None:
    assert digest([*HISTORY[:place], encode(TABLE), *HISTORY[place:]]) == digest(HISTORY)


@pytest.mark.parametrize("number", [each for each in range(len(HISTORY)) if each not in LEFT_OUT])
def test_any_other_byte_of_a_transaction_or_change_makes_another_digest(number: int) -> None:
    whole = digest(HISTORY)
    for place in range(len(HISTORY[number])):
        changed = bytearray(HISTORY[number])
        changed[place] ^= 1
        assert digest([*HISTORY[:number], bytes(changed), *HISTORY[number + 1 :]]) != whole
    assert digest([*HISTORY[:number], *HISTORY[number + 1 :]]) != whole


def test_a_window_without_messages_has_the_digest_of_nothing() -> None:
    assert digest() == digest([]) == digest([encode(TABLE)])
    assert digest() != digest(HISTORY)


def test_a_slice_of_a_batch_is_digested_as_the_slice_that_it_is() -> None:
    made = StreamDigest()
    list(made.passing([pa.array(HISTORY, pa.binary()).slice(2, 3)]))

    assert made.text("any") == digest(HISTORY[2:5])


def test_what_is_no_message_is_refused_as_the_decoder_refuses_it() -> None:
    with pytest.raises(ProtocolError, match="protocol-truncated"):
        digest([b""])

"""On generated streams the columnar decoder says what the scalar one says, and refuses what that one refuses."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.errors import ProtocolError
from penstock.wire import assemble
from penstock.wire import messages as m
from penstock.wire.pgoutput import Decoder
from tests.wire.encoder import encode
from tests.wire.rows import batches, feed, rows_of, scalar_rows
from tests.wire.streams import streams

several = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


pytestmark = pytest.mark.heavy


@several
@given(streams(), st.data(), st.sampled_from([frozenset(), frozenset({"north"}), frozenset({"north", ""})]))
def test_any_stream_cut_into_any_batches_gives_the_same_rows(
    stream: list[m.Message], data: st.DataObject, skip_origins: frozenset[str]
) -> None:
    messages = [encode(message) for message in stream]
    cuts = data.draw(st.lists(st.integers(0, len(messages)), max_size=4))

    blocks, totals = feed(batches(messages, cuts), skip_origins=skip_origins)

    expected = scalar_rows(messages, skip_origins=skip_origins)
    assert expected == rows_of(blocks)
    assert len(messages) == totals.messages
    assert len(expected) == totals.changes
    assert sum(isinstance(message, m.Begin) for message in stream) == totals.transactions


@several
@given(streams(), st.sampled_from([frozenset(), frozenset({"north"})]))
def test_rows_that_are_large_by_themselves_are_taken_without_a_copy_and_give_the_same(
    stream: list[m.Message], skip_origins: frozenset[str]
) -> None:
    messages = [encode(message) for message in stream]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(assemble, "LARGE", 0)

        blocks, totals = feed(batches(messages, range(len(messages))), skip_origins=skip_origins)

        assert scalar_rows(messages, skip_origins=skip_origins) == rows_of(blocks)
        assert len(messages) == totals.messages


@several
@given(streams(), st.data())
def test_a_message_cut_or_one_byte_longer_is_refused_by_its_number(
    stream: list[m.Message], data: st.DataObject
) -> None:
    messages = [encode(message) for message in stream]
    number = data.draw(st.integers(0, len(messages) - 1))
    length = data.draw(st.integers(1, len(messages[number]) + 1).filter(lambda each: each != len(messages[number])))
    messages[number] = (messages[number] + b"\0")[:length]
    cut = data.draw(st.integers(0, len(messages)))

    with pytest.raises(ProtocolError, match=rf"message number {number + 1} of the peek, ") as refusal:
        feed(batches(messages, [cut]))

    assert refusal.value.slug == "protocol-truncated"


@settings(several, max_examples=150)
@given(streams(), st.data())
@pytest.mark.slow
def test_a_byte_changed_anywhere_is_refused_by_both_or_read_the_same_by_both(
    stream: list[m.Message], data: st.DataObject
) -> None:
    messages = [encode(message) for message in stream]
    number = data.draw(st.integers(0, len(messages) - 1))
    changed = bytearray(messages[number])
    changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    messages[number] = bytes(changed)

    expected = refusal_of(messages)

    if expected is None:
        assert scalar_rows(messages) == rows_of(feed(batches(messages))[0])
    else:
        with pytest.raises(ProtocolError) as refusal:
            feed(batches(messages))
        assert expected in refusal.value.message or "UTF-8" in refusal.value.message


def refusal_of(messages: list[bytes]) -> str | None:
    """Return what must be in the columnar decoder's refusal: the scalar one's, or that a batch can't hold a message."""
    decoder = Decoder()
    for number, data in enumerate(messages, 1):
        for_nobody = f"message number {number} of the peek: expected whole transactions in protocol 1"
        if data[0] in b"SEcAbPKrp":
            return for_nobody
        try:
            message = decoder.decode(data)
        except ProtocolError as error:
            return error.message
        if not for_batches(message):
            return for_nobody
    return None


def for_batches(message: m.Message) -> bool:
    """Return whether the landing contract can hold this: no binary values, LSNs below 2^63."""
    match message:
        case m.Insert(new=cells) | m.Update(old=None, new=cells) | m.Delete(old=m.OldKey(cells) | m.OldRow(cells)):
            return not any(isinstance(cell, m.Binary) for cell in cells)
        case m.Update(old=m.OldKey(old) | m.OldRow(old), new=new):
            return not any(isinstance(cell, m.Binary) for cell in (*old, *new))
        case m.Begin(final_lsn=lsn):
            return lsn < 2**63
    return True

"""The scalar decoder against bytes written by hand: whole, cut at every byte, with a byte too many, at a wrong place."""

import pytest

from penstock.errors import ProtocolError
from penstock.wire import messages as m
from penstock.wire.pgoutput import RULES, Decoder, Place, Within
from tests.wire.cases import BLOCK, CASES, FLAWS, ITEMS, NAMED, OPEN, OUT_OF_PLACE, Case
from tests.wire.encoder import encode

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def decoder_at(case: Case) -> Decoder:
    decoder = Decoder(parallel_streaming=case.parallel)
    for message in case.within:
        decoder.decode(encode(message))
    return decoder


@each_case
def test_the_bytes_decode_to_the_message(case: Case) -> None:
    assert case.message == decoder_at(case).decode(case.data)


@each_case
def test_the_message_encodes_to_the_bytes(case: Case) -> None:
    assert case.data == encode(case.message)


@each_case
def test_a_message_cut_at_any_byte_is_refused_with_tag_and_offset(case: Case) -> None:
    for length in range(1, len(case.data)):
        with pytest.raises(ProtocolError) as refusal:
            decoder_at(case).decode(case.data[:length])
        assert refusal.value.slug == "protocol-truncated"
        assert f"message {case.hex[1]!r} of {length} bytes: expected " in refusal.value.message
        assert " offset " in refusal.value.message


@each_case
def test_a_byte_too_many_is_refused(case: Case) -> None:
    with pytest.raises(ProtocolError, match=rf"its end at offset {len(case.data)}, got 1 bytes more") as refusal:
        decoder_at(case).decode(case.data + b"\0")

    assert refusal.value.slug == "protocol-truncated"


@pytest.mark.parametrize(("name", "offset", "byte", "words"), FLAWS)
def test_a_flag_or_kind_that_is_not_in_the_protocol_is_refused(name: str, offset: int, byte: bytes, words: str) -> None:
    case = NAMED[name]

    with pytest.raises(ProtocolError) as refusal:
        decoder_at(case).decode(case.flawed(offset, byte))

    assert refusal.value.slug == "protocol-unknown"
    assert words in refusal.value.message


def test_every_message_of_the_protocol_has_a_case() -> None:
    assert set(RULES) == {case.hex[1] for case in CASES}


@pytest.mark.parametrize("tag", sorted(set(range(256)) - set(map(ord, RULES))))
def test_a_type_byte_that_is_not_in_the_protocol_is_refused(tag: int) -> None:
    with pytest.raises(ProtocolError) as refusal:
        Decoder().decode(bytes([tag]) + bytes(20))

    assert refusal.value.slug == "protocol-unknown"
    assert repr(chr(tag)) in refusal.value.message


def test_an_empty_message_is_refused() -> None:
    with pytest.raises(ProtocolError, match="got '' instead"):
        Decoder().decode(b"")


def test_a_refusal_never_shows_a_value() -> None:
    secret = m.Insert(ITEMS, (m.Text("1"), m.Text("secret")))
    for data in (encode(secret)[:-1], encode(secret) + b"x", encode(secret).replace(b"secret", b"secre\xff")):
        decoder = decoder_at(NAMED["insert"])
        with pytest.raises(ProtocolError) as refusal:
            decoder.decode(data)
        assert "secr" not in f"{refusal.value!r}"
        assert refusal.value.__context__ is None


@pytest.mark.parametrize("name", OUT_OF_PLACE)
def test_a_message_at_a_wrong_place_is_refused(name: str) -> None:
    within, message = OUT_OF_PLACE[name]
    decoder = Decoder()
    for each in within:
        decoder.decode(encode(each))

    with pytest.raises(ProtocolError) as refusal:
        decoder.decode(encode(message))

    assert refusal.value.slug == "protocol-sequence"
    assert ": expected " in refusal.value.message
    assert " instead; " in refusal.value.message


def test_a_change_before_its_relation_is_refused() -> None:
    decoder = Decoder()
    decoder.decode(encode(OPEN[0]))

    with pytest.raises(ProtocolError, match=r"RELATION message for oid 16385") as refusal:
        decoder.decode(encode(m.Insert(ITEMS, (m.Text("1"), m.Text("a")))))

    assert refusal.value.slug == "protocol-sequence"


def test_the_last_relation_message_decides_how_tuples_are_read() -> None:
    narrow = m.Relation(ITEMS.oid, "shop", "Items", "d", ITEMS.columns[:1])
    decoder = decoder_at(NAMED["insert"])
    decoder.decode(encode(narrow))

    inserted = decoder.decode(encode(m.Insert(narrow, (m.Text("1"),))))

    assert inserted == m.Insert(narrow, (m.Text("1"),))


def test_the_xid_is_read_within_a_stream_block_only() -> None:
    decoder = Decoder()
    stream = [*BLOCK, m.Streamed(901, m.Insert(BLOCK[2].message, ())), m.StreamStop(), OPEN[0], ITEMS]  # type: ignore[union-attr,arg-type]

    assert stream == [decoder.decode(encode(message)) for message in stream]
    assert decoder.place == Place(Within.TRANSACTION, OPEN[0].final_lsn)  # type: ignore[union-attr]

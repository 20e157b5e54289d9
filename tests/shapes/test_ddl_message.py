"""The reader of the event trigger's messages: what is not exactly of their form says nothing, whatever it is, and costs no more than its bytes."""

import json
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from penstock.shapes import ddl_message
from penstock.shapes.ddl_message import MOST_BYTES, PREFIX, VERSION, DdlLog, read_message, read_text
from penstock.shapes.known_shape import FileBefore, KnownShape
from penstock.wire.messages import Relation, RelationColumn

TOKEN = "16390.740 16391.741 16392.16392 16393.742 16394.743 16395.744"
STATE: dict[str, Any] = {
    "version": VERSION,
    "tag": "ALTER TABLE",
    "trigger": TOKEN,
    "xid": "4294968039",
    "oid": 16400,
    "schema": "s",
    "name": "a",
    "kind": "r",
    "identity": "d",
    "key": [1],
    "file": 16404,
    "written": [743, 2],
    "plain": True,
    "unlogged": False,
    "count": 3,
    "columns": [[1, "id", 23, -1, 743], [3, "größe", 1043, 24, 740]],
    "dropped": [[2, 742]],
}
GONE = {"version": VERSION, "tag": "DROP TABLE", "trigger": TOKEN, "xid": "743", "oid": 16400, "gone": True}
BEFORE = {
    "version": VERSION,
    "tag": "ALTER TABLE",
    "trigger": None,
    "xid": "7",
    "oid": 9,
    "rewrites": 5,
    "empty": False,
}
GENUINE = [STATE, GONE, BEFORE]
HUGE = "9" * 5000
LARGE = {"400000000", "2147483647", "2147483648", "4294967295"}
DIGITS = {'"1"', '"18446744073709551615"'}
NAMES = {f'"{"x" * 63}"', '"18446744073709551616"', '"000000000000000000001"', '"-1"', '"1e9"', '"²"', '"٣"'}
HOSTILE = [
    *LARGE, *DIGITS, *NAMES, "-2147483648", "-2147483649",
    "1e400", "-1e400", "1e5", "1.0", "NaN", "Infinity", "-Infinity", HUGE, f"-{HUGE}", "-1", "-2", "4294967296",
    "18446744073709551616", "true", "false", "null", '""', '"\\u0000"', '"\\ud800"', f'"{"x" * 64}"', '"' + "é" * 500 + '"',
    f'"{HUGE}"', "[]", "{}", "[[]]", "[" * 5000, "[" * 5000 + "]" * 5000, '{"a":' * 5000,
    "[1,2,3,4,5,6]", '[1,"id",23,-1]', '[[1,"id",23,-1,743],[1,"id",23,-1,743]]', "[" + "0," * 100000 + "0]",
    "[[" + "],[".join(f'{n},"c{n}",23,-1,7' for n in range(1, 1602)) + "]]", "\x00", "\\", '"', "'x'", "",
]  # fmt: skip


def wrapped(text: bytes) -> bytes:
    return bytes(32) + bytes(8) + text


def test_what_the_trigger_writes_is_read() -> None:
    state, gone, before = (read_message(wrapped(json.dumps(each).encode())).said for each in GENUINE)

    assert isinstance(state, KnownShape)
    assert (state.count, state.columns[3], state.dropped) == (3, ("größe", 1043, 24), {2: 742})
    assert (state.versions, state.xid, state.written) == ({1: 743, 3: 740}, 4294968039, (743, 2))
    assert gone == KnownShape(0, {}, TOKEN, xid=743, gone=True, oid=16400)
    assert before == FileBefore(9, None, 7, 5, empty=False)
    assert read_message(bytes(32) + (77).to_bytes(8) + json.dumps(STATE).encode()) == (77, state)
    widest = STATE | {"count": 1600, "dropped": [], "columns": [[n, "\x01" * 63, 23, -1, 7] for n in range(1, 1601)]}
    assert isinstance(read_message(wrapped(json.dumps(widest).encode())).said, KnownShape)


def message(xid: int, place: int, **other: Any) -> bytes:
    """Return a message of a transaction that stood at a place."""
    return bytes(32) + place.to_bytes(8) + json.dumps({**STATE, "xid": str(xid), **other}).encode()


REWRITES = {"rewrites": 7, "empty": True}


@pytest.mark.parametrize(
    ("contents", "shapes", "gaps"),
    [
        pytest.param([message(5, 9), message(5, 9)], [(5, 0, None)], 0, id="one that is sent again"),
        pytest.param([message(5, 9), message(5, 8), message(5, 10)], [(5, 0, None)] * 2, 0, id="one of before"),
        pytest.param(
            [message(5, 9), message(4, 8), message(6, 7)], [(5, 0, None), (4, 0, None), (6, 0, None)], 0, id="others'"
        ),
        pytest.param([message(5, 9), b"x", message(6, 9)], [(5, 0, None), (6, 1, None)], 1, id="one that says nothing"),
        pytest.param(
            [message(5, 8, **REWRITES), message(5, 9), message(5, 10)], [(5, 0, 7), (5, 0, None)], 0, id="a rewrite"
        ),
        pytest.param([message(5, 8, **REWRITES), message(5, 9, oid=3)], [], 0, id="a rewrite of another table"),
    ],
)
def test_messages_are_noted_once_and_in_order(
    contents: list[bytes], shapes: list[tuple[int, int, int | None]], gaps: int
) -> None:
    log = DdlLog()
    for content in contents:
        log.note(PREFIX, content)
        log.note("another's", b"x")

    found = log.shapes.get(STATE["oid"], [])
    assert [(each.xid, each.gaps, each.rewrote and each.rewrote.file) for each in found] == shapes
    assert (log.gaps, log.count(STATE["oid"])) == (gaps, len(shapes))


def test_messages_beyond_what_is_kept_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ddl_message, "KEPT_BYTES", 2 * len(message(5, 8)))
    log = DdlLog()
    for place in range(3):
        log.note(PREFIX, message(5, place))

    assert (log.count(STATE["oid"]), log.gaps) == (2, 1)


def test_the_columns_of_a_relation_are_those_that_were_logged_last() -> None:
    log = DdlLog()
    sent = (RelationColumn("id", 23, -1, True), RelationColumn("größe", 1043, 24, False))
    relation = Relation(STATE["oid"], "s", "a", "d", sent)
    assert log.attnums(relation) is None

    log.note(PREFIX, message(4, 1, columns=[[1, "id", 23, -1, 743]], dropped=[[2, 742], [3, 742]]))
    log.note(PREFIX, message(5, 1))

    assert log.attnums(relation) == (1, 3)
    assert log.attnums(replace(relation, columns=sent[::-1])) is None
    assert log.attnums(replace(relation, columns=(sent[0], replace(sent[1], name="b")))) is None
    assert log.attnums(replace(relation, columns=sent[:1])) == (1,)


def replaced(value: Any, place: tuple[Any, ...]) -> Any:
    """Return a value whose part at a place is the mark for which a hostile text is put."""
    if not place:
        return "@"
    if isinstance(value, dict):
        return {key: replaced(each, place[1:]) if key == place[0] else each for key, each in value.items()}
    return [replaced(each, place[1:]) if number == place[0] else each for number, each in enumerate(value)]


def places(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the places of all parts of a value, itself included."""
    yield here
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in parts:
        yield from places(each, (*here, key))


UNREAD = {"tag", "schema", "name", "kind", "identity", "key"}
SAME = {
    "true": {"gone", "empty", "plain", "unlogged"},
    "false": {"gone", "empty", "plain", "unlogged"},
    "null": {"trigger"},
}


def test_every_hostile_value_at_every_place_says_nothing() -> None:
    taken = []
    for genuine in GENUINE:
        for place in places(genuine):
            if place[:1] and place[0] in UNREAD:
                continue
            for hostile in HOSTILE:
                said = read_text(json.dumps(replaced(genuine, place)).replace('"@"', hostile).encode("utf-8"))
                if said is not None and place[-1] not in SAME.get(hostile, ()):
                    taken.append((place, hostile))
    by_place: dict[tuple[Any, ...], set[str]] = {}
    for place, hostile in taken:
        part = (place[0], *place[2:]) if place[0] in {"columns", "dropped"} else (place[0],)
        by_place.setdefault(part, set()).add(hostile)
    # another number, name or typmod may be as good as the one that was there
    assert by_place.pop(("xid",)) == DIGITS
    assert by_place.pop(("trigger",)) == DIGITS | {'"18446744073709551616"', '"000000000000000000001"'}
    assert by_place.pop(("columns", 1)) == DIGITS | NAMES
    assert by_place.pop(("columns", 3)) == {"-1", "-2", "400000000", "2147483647", "-2147483648"}
    assert all(each == LARGE for each in by_place.values()), by_place
    assert not {"count", "version"} & {part[0] for part in by_place}
    assert not {("columns", 0), ("dropped", 0)} & by_place.keys(), "attnums"


def test_a_key_that_comes_twice_says_nothing() -> None:
    text = json.dumps(STATE)
    assert read_text(text.encode()) is not None
    assert read_text(text.replace('"count": 3', '"count": 3, "count": 3').encode()) is None


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "latin-1"])
def test_another_encoding_than_utf_8_says_nothing(encoding: str) -> None:
    assert read_text(json.dumps(STATE, ensure_ascii=False).encode(encoding)) is None


def test_a_message_costs_memory_in_proportion_to_its_bytes_alone() -> None:
    for text in (HUGE, "[" * MOST_BYTES, "[" + "0," * (MOST_BYTES // 2), '{"version":5,"count":400000000,"oid":1}'):
        tracemalloc.start()
        assert read_message(wrapped(text.encode())[:MOST_BYTES]).said is None
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 40 * MOST_BYTES
    assert read_message(bytes(MOST_BYTES + 1)).said is None


def mutated(random: Random) -> bytes:
    """Return a genuine message that somebody has changed: its bytes, or a value in it."""
    genuine = random.choice(GENUINE)
    text = json.dumps(genuine, ensure_ascii=random.random() < 0.5)
    if random.random() < 0.5:
        place = random.choice(list(places(genuine)))
        other = random.choice(
            [*HOSTILE[:-5], json.dumps(random.choice(list(genuine.values()))), str(random.getrandbits(34))]
        )
        text = json.dumps(replaced(genuine, place)).replace('"@"', other if len(other) < 20_000 else "[0]")
    content = bytearray(wrapped(text.encode("utf-8", "surrogatepass")))
    for _ in range(random.choice([0, 0, 1, 1, 2, 8])):
        start = random.randrange(len(content) + 1)
        end = min(len(content), start + random.choice([0, 1, 1, 2, 40]))
        content[start:end] = random.choice(
            [b"", random.randbytes(3), content[start:end] * 2, b"1e400", b"[", b'"', b"\xff"]
        )
    return bytes(content)


def back(said: KnownShape) -> KnownShape:
    kept = json.loads(json.dumps(said.to_json()))
    return KnownShape.from_json({**kept, "oid": said.oid, "generation": said.generation})


def within_bounds(said: KnownShape | FileBefore) -> bool:
    numbers = [said.oid, said.file]
    if isinstance(said, KnownShape):
        numbers += [*said.columns, *said.dropped, *said.dropped.values(), *said.versions.values(), *said.written]
        assert said.count <= 1600
        assert len(said.columns) + len(said.dropped) == said.count
        assert all(0 < len(name) <= 63 and name.encode() for name, _, _ in said.columns.values())
        assert all(-(1 << 31) <= typmod < 1 << 31 and 0 <= oid < 1 << 32 for _, oid, typmod in said.columns.values())
        assert said.gone or back(said) == said, "the ledger takes it"
    return all(type(number) is int and 0 <= number < 1 << 32 for number in numbers) and 0 <= said.xid < 1 << 64


@pytest.mark.parametrize(
    "number", [pytest.param(20_000, id="some"), pytest.param(1_000_000, id="a million", marks=pytest.mark.slow)]
)
def test_of_messages_that_somebody_has_changed_none_raises_an_error_or_leaves_the_bounds(number: int) -> None:
    random, read_ones = Random(number), 0
    for _ in range(number):
        said = read_message(mutated(random)).said
        read_ones += said is not None
        assert said is None or within_bounds(said)

    assert number / 20 < read_ones < number / 2, "of both kinds there are many"

"""The one reader of what the source's event trigger writes into the WAL: a logical message of its prefix, proved by the source.

Content: 32 bytes that prove it (`include/sql/source/ddl_trigger/wrote.sql`), which the source has checked; 8 bytes, the place in
the WAL where the trigger's function stood; a JSON text. Whatever is not exactly of this form, in types, ranges, lengths and
number, is a message that says nothing: never an exception, and no more memory than its own bytes call for.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from penstock.shapes.known_shape import FileBefore, KnownShape, sent_states
from penstock.wire.controls import LogicalMessages
from penstock.wire.messages import Relation

PREFIX = "penstock.ddl"
VERSION = 5
"""Of the message's form; another one is not read."""
MOST_BYTES = 1 << 20
"""1,600 columns of the longest names, every character escaped, come to two thirds of it."""
KEPT_BYTES = 64 << 20
"""Of messages that are kept; whatever else comes in one peek is taken for messages that say nothing."""
_PROOF = 32
_HEAD = _PROOF + 8
_MOST_COLUMNS = 1600
_NAME = 63  # characters; in UTF-8 each has at most three bytes for one in the database's own encoding
_GENERATION = re.compile(r"[0-9. ]{1,400}")
_DIGITS = 20
_32, _64 = 1 << 32, 1 << 64


class DdlLog(LogicalMessages):
    """Read what the event trigger logged, in stream order: the shapes that commands left, by their table's oid.

    `gaps` counts the messages that say nothing.
    """

    def __init__(self) -> None:
        self.shapes: dict[int, list[KnownShape]] = {}
        self.gaps = 0
        self._rewritten: dict[int, FileBefore] = {}
        self._bytes = 0
        self._last = (0, 0)

    def note(self, prefix: str, content: bytes) -> None:
        """Note a message, once: whoever reads the WAL may send one again, in a transaction of their own."""
        if prefix != PREFIX:
            return
        self._bytes += len(content)
        place, said = read_message(content) if self._bytes <= KEPT_BYTES else (0, None)
        if said is not None:
            if said.xid == self._last[0] and (said.xid, place) <= self._last:
                return
            self._last = (said.xid, place)
        self.add(said)

    def add(self, said: KnownShape | FileBefore | None) -> None:
        """Add what a message says, None where it says nothing."""
        if said is None:
            self.gaps += 1
        elif isinstance(said, FileBefore):
            self._rewritten[said.oid] = said
        else:
            known = replace(said, gaps=self.gaps, rewrote=self._rewritten.pop(said.oid, None))
            self.shapes.setdefault(said.oid, []).append(known)

    def count(self, oid: int) -> int:
        """Count the shapes that were logged of a table."""
        return len(self.shapes.get(oid, ()))

    def attnums(self, relation: Relation) -> tuple[int, ...] | None:
        """Return the columns that a relation has by what was logged of its table last."""
        logged = self.shapes.get(relation.oid)
        return logged[-1].attnums(sent_states(relation)) if logged else None


class Message(NamedTuple):
    """Hold what a message says, None where it says nothing, and where its writer stood in the WAL."""

    place: int
    said: KnownShape | FileBefore | None


def read_message(content: bytes) -> Message:
    """Read a message's content; its writer is known, yet nothing is taken as given."""
    if not _HEAD < len(content) <= MOST_BYTES:
        return Message(0, None)
    return Message(int.from_bytes(content[_PROOF:_HEAD]), read_text(content[_HEAD:]))


def read_text(text: bytes) -> KnownShape | FileBefore | None:
    """Read the JSON text of a message; None where it says that something is missing, or is of another form."""
    try:
        data = json.loads(
            text.decode("utf-8"),
            object_pairs_hook=_once,
            parse_int=_number,
            parse_float=_never,
            parse_constant=_never,
        )
        if not isinstance(data, dict) or data["version"] != VERSION:
            return None
        return _file_before(data) if "rewrites" in data else _shape(data)
    except (KeyError, TypeError, ValueError, RecursionError):  # ValueError: of UTF-8 and of JSON, too
        return None


def _shape(data: Mapping[str, Any]) -> KnownShape:
    oid, generation, xid = _whole(data["oid"], _32), _generation(data["trigger"]), _xid(data["xid"])
    if "gone" in data:
        return KnownShape(0, {}, generation, xid=xid, gone=_flag(data["gone"]), oid=oid)
    columns = [_column(each) for each in _list(data["columns"], _MOST_COLUMNS)]
    dropped = [_pair(each) for each in _list(data["dropped"], _MOST_COLUMNS)]
    shape = KnownShape(
        oid=oid,
        generation=generation,
        count=_whole(data["count"], _MOST_COLUMNS + 1),
        columns={attnum: (name, type_, typmod) for attnum, name, type_, typmod, _ in columns},
        dropped=dict(dropped),
        xid=xid,
        versions={attnum: version for attnum, *_, version in columns},
        file=_whole(data["file"], _32),
        written=_pair(data["written"]),
        plain=_flag(data["plain"]),
        unlogged=_flag(data["unlogged"]),
    )
    numbers = [attnum for attnum, *_ in columns], [attnum for attnum, _ in dropped]
    if sorted(numbers[0] + numbers[1]) != list(range(1, shape.count + 1)) or numbers[0] != sorted(numbers[0]):
        raise ValueError("expected every attnum once, and the columns in their order")
    return shape


def _file_before(data: Mapping[str, Any]) -> FileBefore:
    file, empty = _whole(data["rewrites"], _32), _flag(data["empty"])
    return FileBefore(_whole(data["oid"], _32), _generation(data["trigger"]), _xid(data["xid"]), file, empty)


def _column(each: Any) -> tuple[int, str, int, int, int]:
    attnum, name, type_, typmod, version = _list(each, 5)
    half = _32 // 2
    return _whole(attnum, _32), _text(name), _whole(type_, _32), _whole(typmod, half, -half), _whole(version, _32)


def _pair(each: Any) -> tuple[int, int]:
    one, other = _list(each, 2)
    return _whole(one, _32), _whole(other, _32)


def _whole(value: Any, end: int, start: int = 0) -> int:
    """Return a number that is one, and in its range; `True` is none."""
    if type(value) is not int or not start <= value < end:
        raise ValueError("expected a number of this range")
    return value


def _xid(value: Any) -> int:
    """Return a transaction's 64-bit id, which is written as a text: a number of JSON would lose digits elsewhere."""
    if type(value) is not str or not value.isascii() or not value.isdigit() or len(value) > _DIGITS:
        raise ValueError("expected the digits of a transaction id")
    return _whole(int(value), _64)


def _text(value: Any) -> str:
    if type(value) is not str or not 0 < len(value) <= _NAME or "\0" in value:
        raise ValueError("expected a name")
    value.encode()  # a surrogate alone is no text that a ledger takes
    return value


def _generation(value: Any) -> str | None:
    if value is not None and (type(value) is not str or not _GENERATION.fullmatch(value)):
        raise ValueError("expected the trigger's generation")
    return value


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError("expected true or false")
    return value


def _list(value: Any, most: int) -> Sequence[Any]:
    if type(value) is not list or len(value) > most:
        raise ValueError("expected a list of at most so many")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("expected every key once")
    return found


def _number(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError("expected a number of at most 64 bits")
    return int(digits)


def _never(_: str) -> Any:
    raise ValueError("expected whole numbers only")

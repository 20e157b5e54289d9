"""The one reader of what the source's event trigger writes into the WAL: a logical message of its prefix, proved by the source.

Content: 32 bytes that prove it (`include/sql/source/ddl_trigger/wrote.sql`), which the source has checked; 8 bytes, the place in
the WAL where the trigger's function stood; a JSON text. Whatever is not exactly of this form, in types, ranges, lengths and
number, is a message that says nothing: never an exception, and no more memory than its own bytes call for.
"""

import json
import re
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field

from penstock.codec import record_of
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
_DIGITS = re.compile(r"[0-9]{1,20}")


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


_Number = Annotated[int, Field(strict=True, ge=0, lt=1 << 32)]
_Typmod = Annotated[int, Field(strict=True, ge=-(1 << 31), lt=1 << 31)]
_Count = Annotated[int, Field(strict=True, ge=0, le=_MOST_COLUMNS)]
_Flag = Annotated[bool, Field(strict=True)]
_Generation = Annotated[str, Field(pattern=r"^[0-9. ]{1,400}$")]
# in UTF-8 each character has at most three bytes for one in the database's own encoding
_Name = Annotated[str, Field(max_length=63, pattern=r"^[^\x00]+$")]
# 64 bits, written as a text: a number of JSON would lose digits elsewhere
_Xid = Annotated[int, BeforeValidator(lambda text: int(text) if _DIGITS.fullmatch(text) else None), Field(lt=1 << 64)]
_Column = tuple[_Number, _Name, _Number, _Typmod, _Number]
_Pair = tuple[_Number, _Number]
_Most = Field(max_length=_MOST_COLUMNS)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Message:
    """Take what every message has; one that says that something is missing has no more."""

    version: Annotated[_Number, Field(ge=VERSION, le=VERSION)]
    oid: _Number
    trigger: _Generation | None
    xid: _Xid


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rewrite(_Message):
    rewrites: _Number
    empty: _Flag


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dropped(_Message):
    gone: _Flag


@dataclass(frozen=True, slots=True, kw_only=True)
class _Left(_Message):
    """Take the state in which a command left a table."""

    count: _Count
    columns: Annotated[list[_Column], _Most]
    dropped: Annotated[list[_Pair], _Most]
    file: _Number
    written: _Pair
    plain: _Flag
    unlogged: _Flag


def read_text(text: bytes) -> KnownShape | FileBefore | None:
    """Read the JSON text of a message; None where it says that something is missing, or is of another form."""
    try:
        data = json.loads(text.decode("utf-8"), object_pairs_hook=_once)
        if not isinstance(data, dict):
            return None
        if "rewrites" in data:
            found = record_of(_Rewrite, data)
            return FileBefore(found.oid, found.trigger, found.xid, found.rewrites, found.empty)
        if "gone" in data:
            gone = record_of(_Dropped, data)
            return KnownShape(0, {}, gone.trigger, xid=gone.xid, gone=gone.gone, oid=gone.oid)
        return _shape(record_of(_Left, data))
    except (TypeError, ValueError, RecursionError):  # of UTF-8 and of JSON, too
        return None


def _shape(left: _Left) -> KnownShape:
    numbers = [attnum for attnum, *_ in left.columns]
    if sorted(numbers + [attnum for attnum, _ in left.dropped]) != list(range(1, left.count + 1)):
        raise ValueError("expected every attnum once")
    if numbers != sorted(numbers):
        raise ValueError("expected the columns in their order")
    return KnownShape(
        oid=left.oid,
        generation=left.trigger,
        count=left.count,
        columns={attnum: (name, type_, typmod) for attnum, name, type_, typmod, _ in left.columns},
        dropped=dict(left.dropped),
        xid=left.xid,
        versions={attnum: version for attnum, *_, version in left.columns},
        file=left.file,
        written=left.written,
        plain=left.plain,
        unlogged=left.unlogged,
    )


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("expected every key once")
    return found

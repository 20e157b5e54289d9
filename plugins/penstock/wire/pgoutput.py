"""The scalar decoder: every message of pgoutput, protocol 1 to 4, one at a time.

Strategy: `RULES` maps the type byte to the message's reader and to the places where the protocol allows it; `Decoder`
keeps what the stream has sent so far (the relations, and whether we stand in a transaction or in a stream block).
Bytes in, one message or a ProtocolError out, O(bytes). It is the oracle of the columnar decoder and explains whatever
that one refuses.
"""

from dataclasses import dataclass
from enum import Enum

from penstock.errors import ProtocolError
from penstock.lsn import Lsn
from penstock.wire import messages as m
from penstock.wire import readers
from penstock.wire.readers import NEXT_STEP, Cursor, Reader, Relations


class Within(Enum):
    """Say what surrounds a message."""

    NOTHING = "between transactions"
    TRANSACTION = "in a transaction"
    PREPARE = "in a transaction being prepared"
    BLOCK = "in a stream block"


@dataclass(frozen=True, slots=True)
class Place:
    """Say where in the stream the decoder stands."""

    within: Within = Within.NOTHING
    lsn: Lsn | None = None  # what the opening message announced and the closing one must repeat
    just_opened: bool = False  # an origin may only come now


@dataclass(frozen=True, slots=True)
class Rule:
    """Name the reader of a message and the places where it may stand."""

    read: Reader
    within: frozenset[Within]
    streamed: bool = False  # carries an xid within a stream block


def fields(message: type[m.PlainMessage], *formats: str) -> Reader:
    """Return the reader of a message that is nothing but fields, each as the cursor's method and the field's name.

    `UNUSED` stands for flags that must be 0 and are no field of ours.
    """
    taken = [(getattr(Cursor, method), name) for method, _, name in (each.partition(" ") for each in formats)]

    def read(cursor: Cursor, _: Relations) -> m.PlainMessage:
        values = [take(cursor, name) for take, name in taken]
        return message(*(value for value in values if value is not None))

    return read


UNUSED = "unused flags"
PREPARED = ("lsn prepare LSN", "lsn end LSN", "timestamp prepare time", "int32 xid", "string gid")
_OUTSIDE = frozenset({Within.NOTHING})
_INSIDE = frozenset(Within) - _OUTSIDE

RULES: dict[str, Rule] = {
    "B": Rule(fields(m.Begin, "lsn final LSN", "timestamp commit time", "int32 xid"), _OUTSIDE),
    "C": Rule(
        fields(m.Commit, UNUSED, "lsn commit LSN", "lsn end LSN", "timestamp commit time"),
        frozenset({Within.TRANSACTION}),
    ),
    "O": Rule(fields(m.Origin, "lsn commit LSN", "string origin name"), _INSIDE),
    "R": Rule(readers.read_relation, _INSIDE, streamed=True),
    "Y": Rule(readers.read_type, _INSIDE, streamed=True),
    "I": Rule(readers.read_insert, _INSIDE, streamed=True),
    "U": Rule(readers.read_update, _INSIDE, streamed=True),
    "D": Rule(readers.read_delete, _INSIDE, streamed=True),
    "T": Rule(readers.read_truncate, _INSIDE, streamed=True),
    "M": Rule(
        fields(m.LogicalMessage, "flag flags", "lsn LSN", "string prefix", "octets content"),
        frozenset(Within),
        streamed=True,
    ),
    # streaming of transactions in progress (protocol 2)
    "S": Rule(fields(m.StreamStart, "int32 xid", "flag first segment"), _OUTSIDE),
    "E": Rule(fields(m.StreamStop), frozenset({Within.BLOCK})),
    "c": Rule(
        fields(m.StreamCommit, "int32 xid", UNUSED, "lsn commit LSN", "lsn end LSN", "timestamp commit time"), _OUTSIDE
    ),
    "A": Rule(fields(m.StreamAbort, "int32 xid", "int32 subxid"), _OUTSIDE),
    # prepared transactions (protocol 3)
    "b": Rule(fields(m.BeginPrepare, *PREPARED), _OUTSIDE),
    "P": Rule(fields(m.Prepare, UNUSED, *PREPARED), frozenset({Within.PREPARE})),
    "K": Rule(
        fields(m.CommitPrepared, UNUSED, "lsn commit LSN", "lsn end LSN", "timestamp commit time", *PREPARED[3:]),
        _OUTSIDE,
    ),
    "r": Rule(
        fields(
            m.RollbackPrepared,
            UNUSED,
            *("lsn prepare end LSN", "lsn rollback end LSN", "timestamp prepare time", "timestamp rollback time"),
            *PREPARED[3:],
        ),
        _OUTSIDE,
    ),
    "p": Rule(fields(m.StreamPrepare, UNUSED, *PREPARED), _OUTSIDE),
}
_PARALLEL_ABORT = fields(m.StreamAbort, "int32 xid", "int32 subxid", "lsn abort LSN", "timestamp abort time")
"""Of protocol 4 with `streaming 'parallel'`."""


class Decoder:
    """Decode the messages of one peek in order; after a ProtocolError it is of no more use.

    `parallel_streaming` says that the peek asked for `streaming 'parallel'`, which makes A longer.
    """

    def __init__(
        self, *, parallel_streaming: bool = False, relations: Relations | None = None, place: Place | None = None
    ) -> None:
        self.relations: dict[int, m.Relation] = dict(relations or {})
        self.place = place or Place()
        self._rules = dict(RULES)
        if parallel_streaming:
            self._rules["A"] = Rule(_PARALLEL_ABORT, _OUTSIDE)

    def decode(self, data: bytes) -> m.Message:
        """Read one whole message and remember what it says about those that follow."""
        cursor = Cursor(data)
        rule = self._rule(cursor)
        xid = cursor.int32("xid") if rule.streamed and self.place.within is Within.BLOCK else None
        message = rule.read(cursor, self.relations)
        cursor.end()
        self.place = self._after(message, cursor.tag)
        if isinstance(message, m.Relation):
            self.relations[message.oid] = message
        # only rules with `streamed` set give an xid, and those read what a block may hold
        return message if xid is None else m.Streamed(xid, message)  # type: ignore[arg-type]

    def _rule(self, cursor: Cursor) -> Rule:
        rule = self._rules.get(cursor.tag)
        if rule is None:
            raise cursor.unknown("type byte", f"one of {' '.join(self._rules)}", repr(cursor.tag), 0)
        if self.place.within not in rule.within:
            places = " or ".join(sorted(place.value for place in rule.within))
            raise _out_of_sequence(cursor.tag, f"to find it {places}", self.place.within.value)
        return rule

    def _after(self, message: m.PlainMessage, tag: str) -> Place:
        """Return the place after `message`; raises ProtocolError where it does not fit the place before it."""
        here = self.place
        match message:
            case m.Begin(final_lsn=lsn):
                return Place(Within.TRANSACTION, lsn, just_opened=True)
            case m.BeginPrepare(prepare_lsn=lsn):
                return Place(Within.PREPARE, lsn, just_opened=True)
            case m.StreamStart():
                return Place(Within.BLOCK, just_opened=True)
            case m.Commit(commit_lsn=lsn) | m.Prepare(prepare_lsn=lsn) if lsn != here.lsn:
                raise _out_of_sequence(tag, f"LSN {here.lsn}, as its transaction announced", str(lsn))
            case m.Commit() | m.Prepare() | m.StreamStop():
                return Place()
            case m.Origin() if not here.just_opened:
                raise _out_of_sequence(tag, "to find it right after the opening message", "other messages between")
            case m.LogicalMessage(transactional=inside) if inside == (here.within is Within.NOTHING):
                raise _out_of_sequence(tag, "transactional messages in transactions, others between", here.within.value)
        return Place(here.within, here.lsn)


def _out_of_sequence(tag: str, expected: str, got: str) -> ProtocolError:
    return ProtocolError("protocol-sequence", f"message {tag!r}: expected {expected}, got {got} instead; {NEXT_STEP}")

"""Every message once or more: the value, and its bytes written by hand.

`within` are the messages that lead to the place where it may stand; they are decoded first.
"""

from dataclasses import dataclass
from typing import Final

from penstock.lsn import Lsn
from penstock.wire import messages as m
from penstock.wire.messages import Binary, Missing, OldKey, OldRow, RelationColumn, Text

NULL: Final = Missing.NULL
UNCHANGED: Final = Missing.UNCHANGED

NOON = 700_000_000_000_000
NOON_HEX = "00027CA5 7357C000"

ITEMS = m.Relation(
    0x4001,
    "shop",
    "Items",
    "d",
    (RelationColumn("id", 23, -1, True), RelationColumn("naïve", 1043, 104, False)),
)
ITEMS_HEX = "00004001 'shop' 00 'Items' 00 'd' 0002 01 'id' 00 00000017 FFFFFFFF 00 'na' C3AF 've' 00 00000413 00000068"
BARE = m.Relation(7, "pg_catalog", "bare", "n", ())

OPEN = (m.Begin(Lsn(0x16B374D848), NOON, 900), ITEMS, BARE)
JUST_OPEN = OPEN[:1]
PREPARING = (m.BeginPrepare(Lsn(16), Lsn(32), NOON, 900, "g"),)
BLOCK = (m.StreamStart(900, True), m.Streamed(900, ITEMS), m.Streamed(900, BARE))

PREPARED_HEX = f"00000000 00000010 00000000 00000020 {NOON_HEX} 00000384 'g' 00"
LAST_XID = 2**32 - 1


@dataclass(frozen=True)
class Case:
    name: str
    message: m.Message
    hex: str
    within: tuple[m.Message, ...] = ()
    parallel: bool = False

    @property
    def data(self) -> bytes:
        return from_hex(self.hex)

    def flawed(self, offset: int, byte: bytes) -> bytes:
        """Return the bytes with one of them changed."""
        return self.data[:offset] + byte + self.data[offset + 1 :]

    @property
    def for_batches(self) -> bool:
        """Return whether a batch reader must take this: nothing of streaming or two_phase, no binary values."""
        streamed = any(isinstance(each, m.Streamed | m.StreamStart | m.BeginPrepare) for each in self.within)
        return not streamed and self.hex[1] not in "SEcAbPKrp" and "Binary" not in repr(self.message)


def from_hex(text: str) -> bytes:
    """Read hex digits with 'quoted ASCII' between them."""
    parts = enumerate(text.split("'"))
    return b"".join(part.encode() if number % 2 else bytes.fromhex(part) for number, part in parts)


CASES = [
    Case(
        "begin",
        m.Begin(Lsn(0x16B374D848), NOON, LAST_XID),
        f"'B' 00000016 B374D848 {NOON_HEX} FFFFFFFF",
    ),
    Case("begin before 2000", m.Begin(Lsn(1), -1, 3), "'B' 00000000 00000001 FFFFFFFF FFFFFFFF 00000003"),
    Case(
        "commit",
        m.Commit(Lsn(0x16B374D848), Lsn(0x16B374D878), NOON),
        f"'C' 00 00000016 B374D848 00000016 B374D878 {NOON_HEX}",
        OPEN,
    ),
    Case("origin", m.Origin(Lsn(0xABCDEF), "söder"), "'O' 00000000 00ABCDEF 's' C3B6 'der' 00", JUST_OPEN),
    Case("origin of a prepared transaction", m.Origin(Lsn(1), ""), "'O' 00000000 00000001 00", PREPARING),
    Case("origin of a stream block", m.Origin(Lsn(1), "x"), "'O' 00000000 00000001 'x' 00", BLOCK[:1]),
    Case("relation", ITEMS, f"'R' {ITEMS_HEX}", JUST_OPEN),
    Case("relation without columns", BARE, "'R' 00000007 00 'bare' 00 'n' 0000", JUST_OPEN),
    Case("relation in a stream block", m.Streamed(901, ITEMS), f"'R' 00000385 {ITEMS_HEX}", BLOCK[:1]),
    Case("type", m.Type(0x4002, "shop", "mood"), "'Y' 00004002 'shop' 00 'mood' 00", JUST_OPEN),
    Case(
        "domain over a built-in type",
        m.Type(0x4003, "pg_catalog", "int4"),
        "'Y' 00004003 00 'int4' 00",
        JUST_OPEN,
    ),
    Case(
        "type in a stream block",
        m.Streamed(900, m.Type(1, "s", "t")),
        "'Y' 00000384 00000001 's' 00 't' 00",
        BLOCK,
    ),
    Case(
        "insert",
        m.Insert(ITEMS, (Text("1"), Text("é"))),
        "'I' 00004001 'N' 0002 't' 00000001 '1' 't' 00000002 C3A9",
        OPEN,
    ),
    Case(
        "insert of NULL, and of nothing",
        m.Insert(ITEMS, (Text(""), NULL)),
        "'I' 00004001 'N' 0002 't' 00000000 'n'",
        OPEN,
    ),
    Case(
        "insert of unchanged TOAST",
        m.Insert(ITEMS, (Text("1"), UNCHANGED)),
        "'I' 00004001 'N' 0002 't' 00000001 '1' 'u'",
        OPEN,
    ),
    Case(
        "insert of binary values",
        m.Insert(ITEMS, (Binary(b"\0\0\0\1"), Binary(b"\xff"))),
        "'I' 00004001 'N' 0002 'b' 00000004 00000001 'b' 00000001 FF",
        OPEN,
    ),
    Case("insert into a table without columns", m.Insert(BARE, ()), "'I' 00000007 'N' 0000", OPEN),
    Case(
        "insert in a stream block",
        m.Streamed(902, m.Insert(ITEMS, (NULL, NULL))),
        "'I' 00000386 00004001 'N' 0002 'n' 'n'",
        BLOCK,
    ),
    Case(
        "update",
        m.Update(ITEMS, None, (Text("1"), UNCHANGED)),
        "'U' 00004001 'N' 0002 't' 00000001 '1' 'u'",
        OPEN,
    ),
    Case(
        "update of the key",
        m.Update(ITEMS, OldKey((Text("1"), NULL)), (Text("2"), UNCHANGED)),
        "'U' 00004001 'K' 0002 't' 00000001 '1' 'n' 'N' 0002 't' 00000001 '2' 'u'",
        OPEN,
    ),
    Case(
        "update with the old row",
        m.Update(ITEMS, OldRow((Text("1"), Text("a"))), (Text("1"), NULL)),
        "'U' 00004001 'O' 0002 't' 00000001 '1' 't' 00000001 'a' 'N' 0002 't' 00000001 '1' 'n'",
        OPEN,
    ),
    Case(
        "update in a stream block",
        m.Streamed(900, m.Update(BARE, OldRow(()), ())),
        "'U' 00000384 00000007 'O' 0000 'N' 0000",
        BLOCK,
    ),
    Case(
        "delete by key",
        m.Delete(ITEMS, OldKey((Text("1"), NULL))),
        "'D' 00004001 'K' 0002 't' 00000001 '1' 'n'",
        OPEN,
    ),
    Case(
        "delete with the old row",
        m.Delete(ITEMS, OldRow((Text("1"), Binary(b"a")))),
        "'D' 00004001 'O' 0002 't' 00000001 '1' 'b' 00000001 'a'",
        OPEN,
    ),
    Case(
        "delete in a stream block",
        m.Streamed(900, m.Delete(BARE, OldKey(()))),
        "'D' 00000384 00000007 'K' 0000",
        BLOCK,
    ),
    Case(
        "truncate",
        m.Truncate((ITEMS,), False, False),
        "'T' 00000001 00 00004001",
        OPEN,
    ),
    Case(
        "truncate of two tables",
        m.Truncate((BARE, ITEMS), True, True),
        "'T' 00000002 03 00000007 00004001",
        OPEN,
    ),
    Case(
        "truncate in a stream block",
        m.Streamed(900, m.Truncate((BARE,), True, False)),
        "'T' 00000384 00000001 01 00000007",
        BLOCK,
    ),
    Case(
        "transactional message",
        m.LogicalMessage(True, Lsn(255), "app", b"\0\xff"),
        "'M' 01 00000000 000000FF 'app' 00 00000002 00FF",
        OPEN,
    ),
    Case(
        "message outside of transactions",
        m.LogicalMessage(False, Lsn(255), "", b""),
        "'M' 00 00000000 000000FF 00 00000000",
    ),
    Case(
        "message in a stream block",
        m.Streamed(900, m.LogicalMessage(True, Lsn(1), "p", b"x")),
        "'M' 00000384 01 00000000 00000001 'p' 00 00000001 'x'",
        BLOCK,
    ),
    Case("stream start", m.StreamStart(900, True), "'S' 00000384 01"),
    Case("stream start, later segment", m.StreamStart(900, False), "'S' 00000384 00"),
    Case("stream stop", m.StreamStop(), "'E'", BLOCK),
    Case(
        "stream commit",
        m.StreamCommit(900, Lsn(16), Lsn(32), NOON),
        f"'c' 00000384 00 00000000 00000010 00000000 00000020 {NOON_HEX}",
    ),
    Case("stream abort", m.StreamAbort(900, 901), "'A' 00000384 00000385"),
    Case(
        "stream abort, parallel",
        m.StreamAbort(900, 901, Lsn(16), NOON),
        f"'A' 00000384 00000385 00000000 00000010 {NOON_HEX}",
        parallel=True,
    ),
    Case("begin prepare", m.BeginPrepare(Lsn(16), Lsn(32), NOON, 900, "g"), f"'b' {PREPARED_HEX}"),
    Case("prepare", m.Prepare(Lsn(16), Lsn(32), NOON, 900, "g"), f"'P' 00 {PREPARED_HEX}", PREPARING),
    Case("stream prepare", m.StreamPrepare(Lsn(16), Lsn(32), NOON, 900, "g"), f"'p' 00 {PREPARED_HEX}"),
    Case("commit prepared", m.CommitPrepared(Lsn(16), Lsn(32), NOON, 900, "g"), f"'K' 00 {PREPARED_HEX}"),
    Case(
        "rollback prepared",
        m.RollbackPrepared(Lsn(16), Lsn(32), NOON, -1, 900, "g"),
        f"'r' 00 00000000 00000010 00000000 00000020 {NOON_HEX} FFFFFFFF FFFFFFFF 00000384 'g' 00",
    ),
]

NAMED = {case.name: case for case in CASES}

# One byte of a good message made bad: (case, offset of the byte, what to put there, words of the refusal)
FLAWS = [
    ("commit", 1, b"\1", "expected 0 to 0 as flags at offset 1, got 1"),
    ("relation", 16, b"x", "expected one of d, n, f, i as replica identity at offset 16, got 'x'"),
    ("relation", 19, b"\2", "as column flags at offset 19, got 2"),
    ("relation", 8, b"\xff", "expected UTF-8 as namespace at offset 5, got other bytes"),
    ("insert", 5, b"K", "as tuple kind at offset 5, got 'K'"),
    ("insert", 7, b"\3", 'expected 2 columns of "shop"."Items" as number of columns'),
    ("insert", 8, b"x", 'as kind of column "id" of "shop"."Items" at offset 8'),
    ("insert", 20, b"\xc3", 'expected UTF-8 as column "naïve" of "shop"."Items"'),
    ("update of the key", 5, b"X", "as tuple kind at offset 5"),
    ("update of the key", 8, b"u", 'as kind of old column "id"'),
    ("update of the key", 14, b"u", 'as kind of old column "naïve"'),
    ("delete by key", 14, b"u", 'as kind of old column "naïve"'),
    ("delete by key", 5, b"N", "expected one of K, O as tuple kind"),
    ("truncate", 5, b"\4", "expected 0 to 3 as options at offset 5, got 4"),
    ("transactional message", 1, b"\2", "expected 0 to 1 as flags"),
    ("stream start", 5, b"\2", "as first segment at offset 5"),
    ("stream commit", 5, b"\1", "as flags at offset 5"),
    ("prepare", 1, b"\1", "as flags at offset 1"),
    ("stream prepare", 1, b"\1", "as flags at offset 1"),
    ("commit prepared", 1, b"\1", "as flags at offset 1"),
    ("rollback prepared", 1, b"\1", "as flags at offset 1"),
]

COMMIT = m.Commit(Lsn(0x16B374D848), Lsn(0x16B374D878), NOON)
ORIGIN = m.Origin(Lsn(1), "o")

# Good messages at a wrong place: (what leads there, the message)
OUT_OF_PLACE: dict[str, tuple[tuple[m.Message, ...], m.Message]] = {
    "a change between transactions": ((*OPEN, COMMIT), m.Insert(ITEMS, (Text("1"), Text("a")))),
    "a commit between transactions": ((), COMMIT),
    "a commit at another LSN than announced": (OPEN, m.Commit(Lsn(1), Lsn(2), NOON)),
    "a begin in a transaction": (OPEN, OPEN[0]),
    "a relation between transactions": ((), ITEMS),
    "an origin between transactions": ((), ORIGIN),
    "an origin after a change": (OPEN, ORIGIN),
    "a second origin": ((OPEN[0], ORIGIN), ORIGIN),
    "a transactional message between transactions": ((), m.LogicalMessage(True, Lsn(1), "p", b"")),
    "another message in a transaction": (OPEN, m.LogicalMessage(False, Lsn(1), "p", b"")),
    "a stream start in a transaction": (OPEN, m.StreamStart(900, True)),
    "a stream start in a stream block": (BLOCK, m.StreamStart(900, True)),
    "a stream stop between transactions": ((), m.StreamStop()),
    "a stream commit in a stream block": (BLOCK, m.StreamCommit(900, Lsn(1), Lsn(2), NOON)),
    "a commit in a stream block": (BLOCK, COMMIT),
    "a commit of a transaction being prepared": (PREPARING, COMMIT),
    "a prepare at another LSN than announced": (PREPARING, m.Prepare(Lsn(1), Lsn(32), NOON, 900, "g")),
    "a prepare of an ordinary transaction": (OPEN, m.Prepare(Lsn(16), Lsn(32), NOON, 900, "g")),
}

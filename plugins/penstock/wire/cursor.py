"""A position in one message, and every bounds check there is.

Readers never slice bytes themselves: they name the field they want and the cursor takes it or refuses, saying tag,
offset, what was expected and what was there. After the last field a reader asks for the end, so leftovers are refused too.
"""

import struct

from penstock.errors import ProtocolError
from penstock.lsn import Lsn

NEXT_STEP = (
    "nothing of this window was confirmed; capture again, and if it comes back report it with the server's version"
)

# PostgreSQL's own names of the widths ("Message Data Types"); integers are big-endian
_unpack_int16 = struct.Struct("!H").unpack_from  # counts of columns
_unpack_int32 = struct.Struct("!I").unpack_from  # oids, xids, lengths
_unpack_signed32 = struct.Struct("!i").unpack_from  # type modifiers, -1 for none
_unpack_int64 = struct.Struct("!Q").unpack_from  # LSNs
_unpack_signed64 = struct.Struct("!q").unpack_from  # microseconds since 2000-01-01 UTC


class Cursor:
    """Walk over the bytes of one message, the type byte included; raises ProtocolError on whatever does not fit."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def tag(self) -> str:
        """Name the message by its type byte, `''` for an empty message."""
        return self._data[:1].decode("latin-1")

    def int8(self, field: str) -> int:
        """Take one byte."""
        return self._data[self._advance(1, field)]

    def int16(self, field: str) -> int:
        """Take an unsigned number of two bytes."""
        return int(_unpack_int16(self._data, self._advance(2, field))[0])

    def int32(self, field: str) -> int:
        """Take an unsigned number of four bytes."""
        return int(_unpack_int32(self._data, self._advance(4, field))[0])

    def signed32(self, field: str) -> int:
        """Take a signed number of four bytes."""
        return int(_unpack_signed32(self._data, self._advance(4, field))[0])

    def timestamp(self, field: str) -> int:
        """Take a time: microseconds since 2000-01-01 UTC."""
        return int(_unpack_signed64(self._data, self._advance(8, field))[0])

    def lsn(self, field: str) -> Lsn:
        """Take a WAL position."""
        return Lsn(_unpack_int64(self._data, self._advance(8, field))[0])

    def letter(self, field: str, allowed: str) -> str:
        """Take one byte that must be one of the `allowed` letters."""
        at = self._advance(1, field)
        letter = chr(self._data[at])
        if letter not in allowed:
            raise self.unknown(field, f"one of {', '.join(allowed)}", repr(letter), at)
        return letter

    def flags(self, field: str, highest: int) -> int:
        """Take a byte of flags that must not exceed `highest`."""
        at = self._advance(1, field)
        flags = self._data[at]
        if flags > highest:
            raise self.unknown(field, f"0 to {highest}", str(flags), at)
        return flags

    def flag(self, field: str) -> bool:
        """Take a byte of flags of which one is known."""
        return self.flags(field, 1) == 1

    def unused(self, field: str) -> None:
        """Take a byte of flags of which none is known."""
        self.flags(field, 0)

    def string(self, field: str) -> str:
        """Take text up to its NUL byte."""
        start = self._at
        end = self._data.find(b"\0", start)
        if end < 0:
            raise self._truncated(f"a NUL at the end of {field}, which starts at offset {start}", "none")
        self._at = end + 1
        return self._text(start, end, field)

    def octets(self, field: str) -> bytes:
        """Take a length of four bytes and as many bytes."""
        size = self.int32(f"the length of {field}")
        at = self._advance(size, field)
        return self._data[at : at + size]

    def text(self, field: str) -> str:
        """Take a length of four bytes and as many bytes of UTF-8."""
        size = self.int32(f"the length of {field}")
        at = self._advance(size, field)
        return self._text(at, at + size, field)

    def end(self) -> None:
        """Refuse bytes after the last field."""
        left = len(self._data) - self._at
        if left:
            raise self._truncated(f"its end at offset {self._at}", f"{left} bytes more")

    def unknown(self, field: str, expected: str, got: str, at: int | None = None) -> ProtocolError:
        """Make the error for a field that holds something outside of the protocol."""
        offset = self._at if at is None else at
        message = f"message {self.tag!r}: expected {expected} as {field} at offset {offset}, got {got} instead"
        return ProtocolError("protocol-unknown", f"{message}; {NEXT_STEP}")

    def _advance(self, size: int, field: str) -> int:
        at = self._at
        left = len(self._data) - at
        if left < size:
            raise self._truncated(f"{size} bytes of {field} at offset {at}", f"{left}")
        self._at = at + size
        return at

    def _text(self, start: int, end: int, field: str) -> str:
        try:
            return self._data[start:end].decode("utf-8")
        except UnicodeDecodeError:
            pass  # it holds the bytes, so it must not become the context of what is raised
        raise self.unknown(field, "UTF-8", "other bytes", start)

    def _truncated(self, expected: str, got: str) -> ProtocolError:
        message = f"message {self.tag!r} of {len(self._data)} bytes: expected {expected}, got {got} instead"
        return ProtocolError("protocol-truncated", f"{message}; {NEXT_STEP}")

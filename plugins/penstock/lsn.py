"""A place in PostgreSQL's write-ahead log.

An LSN is an unsigned 64-bit byte position. It is a value type here, so that a position is never mistaken
for a count of bytes, and it has one printed form (`16/B374D848`) and one form for file names (16 hex digits).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from pydantic_core import CoreSchema

_TEXT = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")


class Lsn(int):
    """Hold a WAL position; compares and subtracts (in bytes) as an integer.

    Source: PostgreSQL documentation, "pg_lsn Type".
    """

    __slots__ = ()

    def __new__(cls, value: int) -> Self:
        if not 0 <= value < 1 << 64:
            raise ValueError(f"an LSN must fit 64 unsigned bits, got {int(value)} instead")
        return super().__new__(cls, value)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `16/B374D848`; raises ValueError on any other form."""
        match = _TEXT.fullmatch(text)
        if match is None:
            raise ValueError(f"an LSN must look like 16/B374D848, got {text!r} instead")
        return cls((int(match[1], 16) << 32) | int(match[2], 16))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:  # pydantic's form
        """Let records of `penstock.codec` hold positions: as JSON one is its text."""
        from pydantic_core import core_schema  # noqa: PLC0415  # an executor of Spark has none

        return core_schema.no_info_plain_validator_function(
            lambda value: value if isinstance(value, cls) else cls.parse(str(value)),
            serialization=core_schema.to_string_ser_schema(),
        )

    @property
    def hex16(self) -> str:
        """Name the position in a file name: 16 hex digits, which sort as the positions do."""
        return f"{int(self):016X}"

    def __str__(self) -> str:
        return f"{self >> 32:X}/{self & 0xFFFFFFFF:X}"

    def __repr__(self) -> str:
        return f"Lsn({self})"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

"""The arrays that the columnar decoder and its compiled passes hand each other.

Named tuples of NumPy arrays, because numba takes them as they are. A version is the number that the decoder gives to each
new shape of a relation; NONE stands for whatever is absent.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

NONE = -1
LARGE = 16 << 20
"""Bytes from which a row that is alone is not copied; more than a row group has, so that no file buffers a view of it."""
_TEXT, _UNCHANGED = b"tu"

Bytes = NDArray[np.uint8]
Bits = NDArray[np.bool_]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]


def empty(shape: tuple[int, ...], kind: type[np.generic]) -> NDArray[Any]:
    """Return an array to be filled, from Arrow's allocator.

    That one keeps what was freed; NumPy's hands large arrays back to the kernel, which then zeroes every page again for
    the next batch: a third of the decoder's time.
    """
    buffer = pa.allocate_buffer(math.prod(shape) * np.dtype(kind).itemsize)
    return np.frombuffer(buffer, kind).reshape(shape)


class Controls(NamedTuple):
    """Say what Python made of the R, Y, O and M messages, one entry each, in stream order."""

    value: Int32s  # R: version; O: number of the origin; M: 1 if transactional
    slot: Int32s  # R: place in the catalogue
    skip: Bits  # O: the changes of this transaction are left out


class Catalogue(NamedTuple):
    """Hold the relations: `current[slot]` is the version of the relation `oids[slot]` at this place of the stream."""

    oids: Int64s  # sorted
    current: Int32s
    width: Int32s  # by version: number of columns
    first: Int64s  # by version: place of its first column in `Sizes.new` and `.old`


class Transactions(NamedTuple):
    """Hold the transactions of a batch; number 0 is the last one of the batch before, perhaps still open."""

    final_lsn: Int64s
    commit_time: Int64s
    xid: NDArray[np.uint32]
    origin: Int32s

    @classmethod
    def allocate(cls, begun: int, before: Transactions | None = None) -> Transactions:
        """Return arrays for the `begun` transactions of a batch, and number 0 from the batch `before`."""
        count = begun + 1
        kinds = (np.int64, np.int64, np.uint32, np.int32)
        made = cls._make(np.zeros(count, kind) for kind in kinds)
        made.origin[0] = NONE
        for field in before._fields if before else ():
            getattr(made, field)[0] = getattr(before, field)[-1]
        return made


class Rows(NamedTuple):
    """Hold the changes; `new` and `old` are positions of a tuple's first column."""

    op: Bytes
    version: Int32s
    transaction: Int32s
    new: Int64s
    old: Int64s
    old_kind: Bytes  # 0 where there is no old tuple

    @classmethod
    def allocate(cls, count: int) -> Rows:
        """Return arrays for at most `count` changes."""
        kinds = (np.uint8, np.int32, np.int32, np.int64, np.int64, np.uint8)
        return cls._make(empty((count,), kind) for kind in kinds)

    def take(self, which: Int64s | slice) -> Rows:
        """Return some of the changes."""
        return Rows._make(each[which] for each in self)


class Sizes(NamedTuple):
    """Count what `gather` will need: bytes by column of every version, rows and unchanged cells by version.

    Changes of skipped transactions are in the bytes and cells, too: room that is not touched costs nothing.
    """

    new: Int64s
    old: Int64s
    unchanged: Int64s
    rows: Int64s

    @classmethod
    def allocate(cls, catalogue: Catalogue) -> Sizes:
        """Return zeroed counters for every version and its columns."""
        columns, versions = int(catalogue.width.sum()), len(catalogue.width)
        return cls._make(np.zeros(size, np.int64) for size in (columns, columns, versions, versions))

    def of(self, version: int, catalogue: Catalogue) -> Sizes:
        """Return the counters of one version."""
        first = catalogue.first[version]
        columns, only = slice(first, first + catalogue.width[version]), slice(version, version + 1)
        return Sizes(self.new[columns], self.old[columns], self.unchanged[only], self.rows[only])


class Progress(NamedTuple):
    """Say how far `scan` came: where it stands in the grammar, and what it counted since the decoder was made."""

    opened: int = 0
    just_opened: int = 0
    skipping: int = 0
    rows: int = 0  # of this batch only
    transactions: int = 0
    refused: int = NONE  # number of the message that scan did not accept


class Gathered(NamedTuple):
    """Receive the string columns of one relation; `offsets` are relative to `base`, a column's place in `values`."""

    base: Int64s
    values: Bytes
    offsets: Int32s  # columns x (rows + 1)
    validity: Bytes  # columns x bytes of an Arrow bitmap
    unchanged: Int32s  # column numbers of unchanged TOAST, row after row
    unchanged_offsets: Int32s  # rows + 1

    @classmethod
    def allocate(cls, count: int, sizes: Int64s, unchanged: int) -> Gathered:
        """Return arrays for `count` tuples whose columns hold at most `sizes` bytes, and for so many `unchanged` cells."""
        width, total = len(sizes), int(sizes.sum())
        # the messages came with offsets of 32 bits, and each byte of theirs is copied at most once
        assert total <= np.iinfo(np.int32).max, "columns hold more bytes than the messages"  # noqa: S101
        made = cls(
            base=np.cumsum(sizes) - sizes,
            values=empty((total,), np.uint8),
            offsets=empty((width, count + 1), np.int32),
            validity=np.zeros((width, (count + 7) // 8), np.uint8),
            unchanged=empty((unchanged,), np.int32),
            unchanged_offsets=empty((count + 1,), np.int32),
        )
        made.offsets[:, 0] = 0
        made.unchanged_offsets[0] = 0
        return made

    @classmethod
    def view(cls, data: Bytes, start: int, width: int) -> Gathered:
        """Return what `gather` would for the one tuple that starts there, whose `values` are the message itself."""
        base, offsets, validity = (
            np.zeros(width, np.int64),
            np.zeros((width, 2), np.int32),
            np.zeros((width, 1), np.uint8),
        )
        unchanged: list[int] = []
        at = start
        for column in range(width):
            kind = data[at]
            at += 1
            if kind == _TEXT:
                size = int.from_bytes(data[at : at + 4].tobytes(), "big")
                at += 4
                base[column], offsets[column, 1], validity[column, 0] = at, size, 1
                at += size
            elif kind == _UNCHANGED:
                unchanged.append(column)
        return cls(
            base, data, offsets, validity, np.array(unchanged, np.int32), np.array([0, len(unchanged)], np.int32)
        )

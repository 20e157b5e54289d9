"""One Arrow batch of messages as bare arrays, a digest of all of them, and what to say when the compiled pass has refused one of them.

The pass knows only which message it did not like. The scalar decoder then reads the same messages from the same state,
so the error is its own, with field, offset and expected length. That costs Python per message, once, before the end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.errors import ProtocolError
from penstock.wire.arrays import Bytes, Int32s
from penstock.wire.pgoutput import Decoder
from penstock.wire.readers import NEXT_STEP

NOT_IN_A_BATCH = b"SEcAbPKrp"  # of streaming and two_phase; only the scalar decoder reads them
TRUNCATE_HEAD = 6  # bytes of T before its list of relations


@dataclass(frozen=True, slots=True)
class MessageBatch:
    """Hold messages as Arrow does: message i is `data[offsets[i]:offsets[i + 1]]`; `tags` are the type bytes."""

    data: Bytes
    offsets: Int32s
    tags: Bytes

    @classmethod
    def of(cls, array: pa.BinaryArray) -> MessageBatch:
        """View an array of messages; raises ProtocolError for NULLs and empty messages, TypeError for another type."""
        if array.type != pa.binary():
            raise TypeError(f"messages must come as an Arrow binary array, got {array.type} instead")
        _, offset_buffer, value_buffer = array.buffers()
        data: Bytes = _bare(value_buffer, np.uint8)
        offsets: Int32s = _bare(offset_buffer, np.int32)[array.offset : array.offset + len(array) + 1]
        if array.null_count or not np.diff(offsets).all():
            raise ProtocolError("protocol-truncated", f"expected messages, got NULL or no bytes instead; {NEXT_STEP}")
        return cls(data, offsets, data[offsets[:-1]])

    def __len__(self) -> int:
        return len(self.tags)

    def __getitem__(self, number: int) -> bytes:
        return self.data[self.offsets[number] : self.offsets[number + 1]].tobytes()

    def relation(self, number: int) -> int:
        """Return the oid that a change names, which follows its type byte."""
        start = int(self.offsets[number]) + 1
        return int.from_bytes(self.data[start : start + 4].tobytes(), "big")

    def tagged(self, tags: bytes) -> NDArray[np.intp]:
        """Return the numbers of the messages with one of these type bytes."""
        wanted = np.zeros(256, np.bool_)
        wanted[list(tags)] = True
        return np.flatnonzero(wanted[self.tags])

    def most_rows(self) -> int:
        """Return how many rows the changes of this batch make at most: one each, one per relation of a TRUNCATE."""
        truncates = self.tagged(b"T")
        named = (np.diff(self.offsets)[truncates].astype(np.int64) - TRUNCATE_HEAD) // 4
        return len(self.tagged(b"IUD")) + int(named.clip(0).sum())


def _bare(buffer: pa.Buffer | None, kind: type[np.generic]) -> NDArray[Any]:
    """View a buffer as read-only, whoever made it: numba compiles once more for a writable array."""
    view = np.frombuffer(buffer or b"", kind)
    view.flags.writeable = False
    return view


def explain(batch: MessageBatch, refused: int, oracle: Decoder, before: int) -> ProtocolError:
    """Return the error for the message `refused` of `batch`, or for the first one that is as bad.

    `oracle` stands at the batch's start, `before` messages into the peek. Messages are numbered from 1, as
    `with ordinality` does.
    """
    for number in range(refused + 1):
        message = batch[number]
        where = f"message number {before + number + 1} of the peek"
        if message[0] in NOT_IN_A_BATCH:
            break
        try:
            oracle.decode(message)
        except ProtocolError as error:
            return ProtocolError(error.slug, f"{where}, {error.message}")
    expected = "whole transactions in protocol 1, values as text (slot: two_phase=false; peek: no streaming, no binary)"
    got = f"message {chr(message[0])!r}"
    return ProtocolError("protocol-unknown", f"{where}: expected {expected}, got {got} instead; {NEXT_STEP}")


_LEFT_OUT = b"RYM"
_DIGITS = 32


class StreamDigest:
    """Digest messages while they pass: the same history gives the same digest at every peek, another history never does.

    BEGIN and COMMIT carry places, times and ids that no second history repeats, and the changes carry every byte of the rows.
    RELATION and TYPE are left out: the server repeats them whenever another session has it look at its catalog again. So are
    logical messages: which of them come depends on a secret of the source, which may be replaced. O(bytes), plus Python per
    message that is left out.
    """

    def __init__(self) -> None:
        self._hash = hashlib.sha256()  # twice as fast as BLAKE2 where the processor knows it

    def passing(self, batches: Iterable[pa.BinaryArray]) -> Iterator[pa.BinaryArray]:
        """Yield the batches as they come, digested; raises ProtocolError as the decoder does."""
        for batch in batches:
            self._update(MessageBatch.of(batch))
            yield batch
            del batch  # it may be large, and the next one comes before this name would mean that

    def text(self, asked: str) -> str:
        """Return the digest of what has passed, after the options with which it was `asked` for."""
        return f"{asked}:{self._hash.hexdigest()[:_DIGITS]}"

    def _update(self, batch: MessageBatch) -> None:
        start = 0
        for number in batch.tagged(_LEFT_OUT).tolist():
            self._hash.update(batch.data[batch.offsets[start] : batch.offsets[number]].data)
            start = number + 1
        self._hash.update(batch.data[batch.offsets[start] : batch.offsets[-1]].data)

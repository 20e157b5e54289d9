"""A digest of a stream of messages: the same history gives the same digest at every peek, another history never does.

BEGIN and COMMIT carry places, times and ids that no second history repeats, and the changes carry every byte of the rows.
RELATION and TYPE are left out: the server repeats them whenever another session has it look at its catalog again. So are logical
messages: which of them come depends on a secret of the source, which may be replaced.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

import pyarrow as pa

from penstock.wire.batch import MessageBatch

_LEFT_OUT = b"RYM"
_DIGITS = 32


class StreamDigest:
    """Digest messages while they pass; O(bytes), plus Python per message that is left out."""

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

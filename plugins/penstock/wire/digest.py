"""A digest of a stream of messages: the same history gives the same digest at every peek, another history never does.

BEGIN and COMMIT carry places, times and ids that no second history repeats, and the changes carry every byte of the rows.
RELATION and TYPE are left out: the server repeats them whenever another session has it look at its catalog again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

import pyarrow as pa

from penstock.wire.batch import MessageBatch

_REPEATED = b"RY"
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

    def text(self, origin: str) -> str:
        """Return the digest of what has passed, after the option `origin` that the messages were asked for with."""
        return f"{origin}:{self._hash.hexdigest()[:_DIGITS]}"

    def _update(self, batch: MessageBatch) -> None:
        start = 0
        for number in batch.tagged(_REPEATED).tolist():
            self._hash.update(batch.data[batch.offsets[start] : batch.offsets[number]].data)
            start = number + 1
        self._hash.update(batch.data[batch.offsets[start] : batch.offsets[-1]].data)

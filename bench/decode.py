"""Changes per second of the columnar decoder alone, on messages made here: no server, no files.

    python -m bench.decode [changes] [columns]

Half inserts, three eighths updates, one eighth deletes; transactions of 25 changes; 32 MiB batches. The messages stand
in memory before the clock starts. The scalar decoder runs on a part of them for comparison.
"""

import struct
import sys
import time
from pathlib import Path

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plugins"))

from penstock.wire.columnar import ColumnarDecoder, warm_up
from penstock.wire.pgoutput import Decoder

BATCH_BYTES = 32 << 20
CHANGES_PER_TRANSACTION = 25
RELATION_OID = 16400
KINDS = "IIIIUUUD"


def values(key: int, columns: int) -> list[bytes]:
    """Return the text of a row: a key, a number, a time, names of growing length, a small jsonb."""
    row = [
        b"%d" % key,
        b"%d.%02d" % (key % 9999, key % 100),
        b"2025-06-01 12:%02d:%02d.123456+00" % (key % 60, key % 59),
        b"customer %d" % (key % 5000),
        b'{"a": %d, "tags": ["x", "y"]}' % key,
        b"{1,2,%d}" % (key % 77),
        b"Stra\xc3\x9fe %d" % (key % 300),
        b"t",
    ]
    return (row * (columns // len(row) + 1))[:columns]


def tuple_data(cells: list[bytes | None]) -> bytes:
    """Return TupleData: text, or NULL for None."""
    parts = [b"n" if cell is None else struct.pack("!cI", b"t", len(cell)) + cell for cell in cells]
    return struct.pack("!H", len(cells)) + b"".join(parts)


def relation(columns: int) -> bytes:
    """Return the RELATION message."""
    described = (
        struct.pack("!B", number == 0) + b"c%d\0" % number + struct.pack("!Ii", 25, -1) for number in range(columns)
    )
    return (
        struct.pack("!cI", b"R", RELATION_OID) + b"public\0bench\0d" + struct.pack("!H", columns) + b"".join(described)
    )


def change(number: int, columns: int) -> bytes:
    """Return the change of this number."""
    kind, head = KINDS[number % len(KINDS)], struct.pack("!I", RELATION_OID)
    row: list[bytes | None] = list(values(number, columns))
    if kind == "D":
        return b"D" + head + b"K" + tuple_data([row[0], *[None] * (columns - 1)])
    return kind.encode() + head + b"N" + tuple_data(row)


def stream(changes: int, columns: int) -> list[bytes]:
    """Return the messages of so many changes, in transactions."""
    messages = []
    for first in range(0, changes, CHANGES_PER_TRANSACTION):
        lsn = 1000 + first * 100
        messages.append(struct.pack("!cQqI", b"B", lsn, lsn, 700 + first))
        messages += [relation(columns)] * (first == 0)
        messages += [change(number, columns) for number in range(first, min(first + CHANGES_PER_TRANSACTION, changes))]
        messages.append(struct.pack("!cBQQq", b"C", 0, lsn, lsn + 50, lsn))
    return messages


def batches(messages: list[bytes]) -> list[pa.BinaryArray]:
    """Return the messages as Arrow arrays of about BATCH_BYTES."""
    whole = pa.array(messages, pa.binary())
    per_batch = max(1, len(messages) * BATCH_BYTES // max(1, whole.nbytes))
    return [pa.array(messages[at : at + per_batch], pa.binary()) for at in range(0, len(messages), per_batch)]


def main(changes: int = 1_000_000, columns: int = 8) -> None:
    """Print what was measured."""
    started = time.perf_counter()
    warm_up()
    print(f"warm-up {time.perf_counter() - started:.2f} s")
    messages = stream(changes, columns)
    arrays = batches(messages)
    size = sum(map(len, messages))
    print(
        f"{changes} changes of {columns} columns, {len(messages)} messages, {size / 1e6:.0f} MB, {len(arrays)} batches"
    )
    for _ in range(3):
        decoder = ColumnarDecoder(xid_horizon=1 << 33)
        started, cpu = time.perf_counter(), time.process_time()
        for array in arrays:
            decoder.feed(array)
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
        assert decoder.finish().changes == changes
        print(
            f"columnar {changes / seconds / 1e6:6.2f} M changes/s, {size / seconds / 1e6:6.0f} MB/s;"
            f" {changes / cpu / 1e6:6.2f} M changes per CPU second"
        )
    some = messages[:50_000]
    scalar = Decoder()
    started = time.perf_counter()
    for message in some:
        scalar.decode(message)
    print(f"scalar   {len(some) / (time.perf_counter() - started) / 1e6:6.3f} M messages/s")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

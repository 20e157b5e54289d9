"""Deletion vectors: which rows of a data file are gone, as bytes, and the Puffin file that holds those of many files.

Nothing checks them again: a vector of a wrong path, or with a wrong position, is a table that is wrong in silence. So
what is read is checked by its sum, and what is written is held to the rows that were matched.

Source: Iceberg specification, "Deletion Vectors"; Puffin specification, "deletion-vector-v1" and "File structure".
"""

import json
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from penstock.engine.failure import EngineFailure
from penstock.engine.files import Store
from penstock.engine.order import NewVector, TargetFile, Vector, new_location

_MAGIC = b"\xd1\xd3\x39\x64"
_PUFFIN = b"PFA1"
_BLOB_TYPE = "deletion-vector-v1"
_ROW_POSITION = 2147483645  # the reserved field id of a row's position


def lookup(bitmap: BitMap, rows: int) -> Callable[[npt.NDArray[np.int64]], npt.NDArray[np.bool_]]:
    """Return what says of many positions at once which of them a bitmap holds: a bit per row of the file."""
    held = np.zeros(rows, np.bool_)
    held[positions(bitmap)] = True
    bits = np.packbits(held, bitorder="little")
    return lambda asked: (bits[asked >> 3] >> (asked & 7).astype(np.uint8) & 1).astype(np.bool_)


def positions(bitmap: BitMap) -> npt.NDArray[np.int64]:
    """Return what a bitmap holds, in order."""
    return np.asarray(bitmap.to_array(), np.int64)


def add(bitmap: BitMap, more: npt.NDArray[np.int64]) -> None:
    """Add positions to a bitmap; raises EngineFailure where one is there already."""
    join(bitmap, BitMap(np.ascontiguousarray(more, np.uint32)))


def join(bitmap: BitMap, more: BitMap) -> None:
    """Add another bitmap's positions; raises EngineFailure where one is there already."""
    expected = len(bitmap) + len(more)
    bitmap |= more
    if len(bitmap) != expected:
        raise EngineFailure("a row that goes twice", None, unreadable=False)


def read_vector(lake: Store, vector: Vector) -> BitMap:
    """Return the rows that a vector says are gone; raises EngineFailure on bytes that are no such vector."""
    blob = lake.read(vector.path, vector.offset, vector.length)
    try:
        found = decode(blob)
    except (ValueError, struct.error):
        raise EngineFailure.at(vector.path, "a damaged deletion vector") from None
    if len(found) != vector.cardinality:
        raise EngineFailure.at(vector.path, f"a deletion vector of {len(found)} rows instead of {vector.cardinality}")
    return found


def gone(lake: Store, target: Sequence[TargetFile], chosen: Iterable[int]) -> dict[int, BitMap]:
    """Return the rows that are gone already from the chosen files, by the index of the file."""
    wanted = [(at, target[at].vector) for at in chosen]
    return {at: read_vector(lake, vector) for at, vector in wanted if vector is not None}


def write_vectors(
    lake: Store,
    folder: str,
    target: Sequence[TargetFile],
    going: Mapping[int, BitMap],
    gone: Mapping[int, BitMap],
) -> tuple[NewVector, ...]:
    """Write one Puffin file with a vector for each data file that loses rows: those, and all that were gone before; none for no rows.

    Raises EngineFailure where a place is not one of its file's rows or a row would go twice.
    """
    bitmaps: dict[str, BitMap] = {}
    for at, positions in sorted(going.items()):
        file, before = target[at], gone.get(at, BitMap())
        if positions.max() >= file.rows:
            raise EngineFailure.at(file.path, f"a place beyond its {file.rows} rows")
        bitmaps[file.path] = positions | before
        if len(bitmaps[file.path]) != len(before) + len(positions):
            raise EngineFailure.at(file.path, "a row that goes twice")
    if not bitmaps:
        return ()
    content, blobs = encode_file(bitmaps)
    location = new_location(folder, "-deletes.puffin")
    lake.write(location, content)
    return tuple(
        NewVector(path, Vector(location, offset, length, len(bitmaps[path])), len(content))
        for path, (offset, length) in blobs.items()
    )


def encode(bitmap: BitMap) -> bytes:
    """Return the blob of a vector; one bitmap of 32 bits is enough, for a Parquet file has fewer rows."""
    bitmap.run_optimize()
    body = _MAGIC + struct.pack("<QI", 1, 0) + bitmap.serialize()
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def decode(blob: bytes) -> BitMap:
    """Read what `encode`, or Iceberg, wrote; raises ValueError on other bytes."""
    (length,) = struct.unpack_from(">I", blob)
    body = blob[4 : 4 + length]
    (checksum,) = struct.unpack_from(">I", blob, 4 + length)
    if body[:4] != _MAGIC or zlib.crc32(body) != checksum:
        raise ValueError("expected a deletion vector with its checksum, got other bytes")
    (bitmaps,) = struct.unpack_from("<Q", body, 4)
    if bitmaps == 0:
        return BitMap()
    (key,) = struct.unpack_from("<I", body, 12)
    if bitmaps > 1 or key:
        raise ValueError("expected a deletion vector of positions below 2^32, got one beyond")
    return BitMap.deserialize(body[16:])


def encode_file(bitmaps: Mapping[str, BitMap]) -> tuple[bytes, dict[str, tuple[int, int]]]:
    """Return the bytes of a Puffin file with the vectors of these data files, and each one's offset and length."""
    content, blobs, places = bytearray(_PUFFIN), [], {}
    for path, bitmap in bitmaps.items():
        blob = encode(bitmap)
        places[path] = (len(content), len(blob))
        blobs.append(
            {
                "type": _BLOB_TYPE,
                "fields": [_ROW_POSITION],
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": len(content),
                "length": len(blob),
                "properties": {"referenced-data-file": path, "cardinality": str(len(bitmap))},
            }
        )
        content += blob
    footer = json.dumps({"blobs": blobs, "properties": {"created-by": "penstock"}}).encode()
    content += _PUFFIN + footer + struct.pack("<II", len(footer), 0) + _PUFFIN
    return bytes(content), places

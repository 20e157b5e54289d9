"""Deletion vectors: which rows of a data file are gone, as bytes, and the Puffin file that holds those of many files.

Nothing checks them again: a vector of a wrong path, or with a wrong position, is a table that is wrong in silence. So
what is read is checked by its sum, and what is written is held to the rows that were matched.

Source: Iceberg specification, "Deletion Vectors"; Puffin specification, "deletion-vector-v1" and "File structure".
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from penstock.engine.failure import EngineFailure
from penstock.engine.files import Store
from penstock.engine.order import NewVector, TargetFile, Vector

_MAGIC = b"\xd1\xd3\x39\x64"
_PUFFIN = b"PFA1"
_BLOB_TYPE = "deletion-vector-v1"
_ROW_POSITION = 2147483645  # the reserved field id of a row's position

Positions = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class Matched:
    """Hold the places of rows: the index of a data file of the order, and the row's position in it."""

    file: npt.NDArray[np.int64]
    position: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.file)

    def where(self, keep: npt.NDArray[np.bool_]) -> Matched:
        """Return the chosen places."""
        return Matched(self.file[keep], self.position[keep])


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


def gone(lake: Store, target: tuple[TargetFile, ...]) -> dict[int, BitMap]:
    """Return the rows that are gone already, by the index of their data file."""
    return {at: read_vector(lake, file.vector) for at, file in enumerate(target) if file.vector is not None}


def still_there(matched: Matched, gone: Mapping[int, BitMap]) -> npt.NDArray[np.bool_]:
    """Return which places hold a row that is not gone already."""
    there = np.ones(len(matched), np.bool_)
    for at, bitmap in gone.items():
        own = np.nonzero(matched.file == at)[0]
        if len(own):
            dead = np.asarray(bitmap.to_array(), np.uint32)
            there[own] = ~np.isin(matched.position[own], dead)
    return there


def write_vectors(
    lake: Store, location: str, target: tuple[TargetFile, ...], matched: Matched, gone: Mapping[int, BitMap]
) -> tuple[NewVector, ...]:
    """Write one Puffin file with a vector for each data file that loses rows: those, and all that were gone before.

    Raises EngineFailure where a place is not one of its file's rows or a row would go twice.
    """
    bitmaps: dict[str, BitMap] = {}
    order = np.argsort(matched.file, kind="stable")
    touched, starts = np.unique(matched.file[order], return_index=True)
    for at, positions in zip(touched.tolist(), np.split(matched.position[order], starts[1:]), strict=True):
        file = target[at]
        if positions.min() < 0 or positions.max() >= file.rows:
            raise EngineFailure.at(file.path, f"a place beyond its {file.rows} rows")
        bitmap = BitMap(np.ascontiguousarray(positions, np.uint32))
        before = gone.get(at, BitMap())
        bitmap |= before
        if len(bitmap) != len(before) + len(positions):
            raise EngineFailure.at(file.path, "a row that goes twice")
        bitmaps[file.path] = bitmap
    content, blobs = encode_file(bitmaps)
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

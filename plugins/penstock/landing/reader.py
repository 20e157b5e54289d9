"""Read landing files back, strictly: these contract versions or none.

A file that is absent or damaged stops the pipeline, because a change would be lost; a zone that does not
answer is only worth another try. The two are separated here.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from penstock.contract.schema import CONTRACT_KEY, CONTRACT_VERSIONS
from penstock.errors import LakeError
from penstock.landing.store import missing, unreachable, unread


def read_table(filesystem: fs.FileSystem, path: str, uri: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Return a landing file as a table, of all columns or these; `uri` names it in messages.

    Raises LakeError: "landing-file-missing" (absent or damaged), "landing-version" (no contract version of ours),
    "landing-unreachable".
    """
    require(filesystem, path, uri)
    try:
        with filesystem.open_input_file(path) as source, pq.ParquetFile(source) as file:
            _same_contract(file.schema_arrow.metadata, uri)
            return file.read(columns)
    except (OSError, pa.ArrowException) as error:
        require(filesystem, path, uri)  # else the zone went away while we read
        raise unread(uri, "it cannot be read to its end", error) from error


def check(filesystem: fs.FileSystem, path: str, uri: str) -> int:
    """Look at a landing file's footer only, and return how many rows it has; raises as `read` does."""
    require(filesystem, path, uri)
    try:
        with filesystem.open_input_file(path) as source, pq.ParquetFile(source) as file:
            _same_contract(file.schema_arrow.metadata, uri)
            return int(file.metadata.num_rows)
    except (OSError, pa.ArrowException) as error:
        require(filesystem, path, uri)  # else the zone went away while we read
        raise unread(uri, "its end cannot be read", error) from error


def require(filesystem: fs.FileSystem, path: str, uri: str) -> fs.FileInfo:
    """Return what the zone says of a file that must be there; raises as `read` does."""
    info = file_info(filesystem, path, uri)
    if info.type != fs.FileType.File:
        raise missing(uri, "it is not there")
    return info


def file_info(filesystem: fs.FileSystem, path: str, uri: str) -> fs.FileInfo:
    """Ask the zone for one path; raises LakeError("landing-unreachable") when it does not answer."""
    with unreachable(uri):
        return filesystem.get_file_info(path)


def _same_contract(metadata: dict[bytes, bytes] | None, uri: str) -> None:
    found = (metadata or {}).get(CONTRACT_KEY, b"none").decode(errors="replace")
    if found not in map(str, CONTRACT_VERSIONS):
        raise LakeError(
            "landing-version",
            f"expected landing contract version {' or '.join(map(str, CONTRACT_VERSIONS))} in {uri}, got {found} instead; "
            "read it with the Penstock that wrote it, or copy its table again",
        )

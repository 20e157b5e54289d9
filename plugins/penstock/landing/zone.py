"""The landing zone: one folder or object-store prefix, addressed by relative paths.

Everything is written as a draft that appears under its name when it is whole and durable (`penstock.landing.atomic_file`),
so a reader never meets half a file. Files are read back strictly: our contract versions or none. One that is absent or damaged stops
the pipeline, because a change would be lost; a zone that does not answer is only worth another try.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from penstock.contract.schema import CONTRACT_KEY, CONTRACT_VERSIONS
from penstock.errors import LakeError
from penstock.landing import store
from penstock.landing.atomic_file import PART, Draft, FolderDraft, UploadDraft
from penstock.landing.row_groups import Budget
from penstock.landing.store import missing, unreachable, unread, unwritable
from penstock.landing.writer import CopyWriter, FileWriter


class LandingZone:
    """Address the files of one zone; its writers share one memory budget and belong to one thread."""

    def __init__(self, filesystem: fs.FileSystem, root: str, root_uri: str) -> None:
        self._filesystem = filesystem
        self._root = root
        self._root_uri = root_uri
        self._budget = Budget()

    @classmethod
    def open(cls, uri: str, options: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> LandingZone:
        """Return the zone at a folder, a `file://` URI or `s3://bucket/prefix`; nothing is contacted yet.

        `options` are those of `penstock.landing.store`; raises ConfigError("config-invalid").
        """
        return cls(*store.resolve(uri, options, environment))

    def __repr__(self) -> str:
        return f"LandingZone({self._root_uri!r})"

    def uri(self, path: str) -> str:
        """Return the absolute URI of a path, as Spark wants it."""
        return f"{self._root_uri}/{path}"

    def writer(self, path: str, columns: Sequence[str]) -> FileWriter:
        """Return a writer of one landing file; nothing is opened before it has a row group to write."""
        return FileWriter(self._draft(path), path, self.uri(path), columns, self._budget)

    def copy_writer(self, path: str, columns: Sequence[str], typed: Mapping[str, str]) -> CopyWriter:
        """Return a writer of one file of a copy; `typed` gives the lake types of columns that come as values."""
        return CopyWriter(self._draft(path), path, self.uri(path), columns, typed, self._budget)

    def read(self, path: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return a landing file as a table, of all columns or these.

        Raises LakeError: "landing-file-missing" (absent or damaged), "landing-version" (no contract version of ours),
        "landing-unreachable".
        """
        return self._opened(path, "it cannot be read to its end", lambda file: file.read(columns))

    def rows(self, path: str) -> int:
        """Return how many rows a landing file has, by its footer, which alone is looked at; raises what `read` raises."""
        return int(self._opened(path, "its end cannot be read", lambda file: file.metadata.num_rows))

    def _opened(self, path: str, problem: str, read: Callable[[pq.ParquetFile], Any]) -> Any:
        self._require(path)
        try:
            with self._filesystem.open_input_file(self._full(path)) as source, pq.ParquetFile(source) as file:
                _require_contract(file.schema_arrow.metadata, self.uri(path))
                return read(file)
        except (OSError, pa.ArrowException) as error:
            self._require(path)  # else the zone went away while we read
            raise unread(self.uri(path), problem, error) from error

    def write_text(self, path: str, text: str) -> None:
        """Write a small file at once, replacing one of that name; raises LakeError("landing-unwritable")."""
        draft = self._draft(path)
        with unwritable(self.uri(path)):
            try:
                draft.open().write(text.encode())
                draft.publish()
            except BaseException:
                draft.discard()
                raise

    def read_text(self, path: str) -> str:
        """Return what `write_text` wrote; raises LakeError("landing-file-missing" or "landing-unreachable")."""
        self._require(path)
        with unreachable(self.uri(path)), self._filesystem.open_input_stream(self._full(path)) as stream:
            return bytes(stream.read()).decode()

    def exists(self, path: str) -> bool:
        """Return whether a file or folder is there; raises LakeError("landing-unreachable")."""
        return bool(self._info(path).type != fs.FileType.NotFound)

    def written_at(self, path: str) -> datetime | None:
        """Return when a file was written, by the zone's clock; None where there is none."""
        found = self._info(path)
        return found.mtime if found.type == fs.FileType.File else None

    def newest(self, folder: str) -> datetime | None:
        """Return when the newest file below a folder was written, drafts included, by the zone's clock; None without any."""
        times = [info.mtime for info in self._infos(folder, recursive=True) if info.type == fs.FileType.File]
        return max(filter(None, times), default=None)

    def list(self, folder: str) -> Sequence[str]:
        """List all finished files below a folder, as sorted paths relative to the zone; none if it is absent."""
        return self._below(folder, fs.FileType.File, recursive=True)

    def folders(self, folder: str) -> Sequence[str]:
        """List the folders directly in a folder, as sorted paths relative to the zone; none if it is absent."""
        return self._below(folder, fs.FileType.Directory, recursive=False)

    def delete(self, path: str) -> None:
        """Delete one file, one that is absent included; raises LakeError("landing-unwritable")."""
        with unwritable(self.uri(path)), suppress(FileNotFoundError):
            self._filesystem.delete_file(self._full(path))

    def delete_folder(self, folder: str) -> None:
        """Delete a folder with all it holds, one that is absent included; raises LakeError("landing-unwritable")."""
        if not folder.strip("/"):
            raise ValueError("expected a folder inside the landing zone, got the whole zone")
        with unwritable(self.uri(folder)), suppress(FileNotFoundError):
            if not isinstance(self._filesystem, fs.LocalFileSystem):
                self._delete_one_by_one(self._full(folder))
            self._filesystem.delete_dir(self._full(folder))

    def _delete_one_by_one(self, folder: str) -> None:
        """Empty a folder of a store: some refuse to delete many at once without a checksum that clients don't send."""
        found = self._filesystem.get_file_info(fs.FileSelector(folder, recursive=True))
        for info in sorted(found, key=lambda info: info.path, reverse=True):  # what is inside comes before its folder
            if info.type == fs.FileType.File:
                self._filesystem.delete_file(info.path)
            else:
                self._filesystem.delete_dir(info.path)

    def _below(self, folder: str, kind: fs.FileType, *, recursive: bool) -> Sequence[str]:
        found = self._infos(folder, recursive=recursive)
        paths = (info.path.removeprefix(f"{self._root}/") for info in found if info.type == kind)
        return sorted(path for path in paths if not path.endswith(PART))

    def _require(self, path: str) -> fs.FileInfo:
        """Return what the zone says of a file that must be there; raises as `read` does."""
        info = self._info(path)
        if info.type != fs.FileType.File:
            raise missing(self.uri(path), "it is not there")
        return info

    def _info(self, path: str) -> fs.FileInfo:
        with unreachable(self.uri(path)):
            return self._filesystem.get_file_info(self._full(path))

    def _infos(self, folder: str, *, recursive: bool) -> Sequence[fs.FileInfo]:
        selector = fs.FileSelector(self._full(folder), allow_not_found=True, recursive=recursive)
        with unreachable(self.uri(folder)):
            found: Sequence[fs.FileInfo] = self._filesystem.get_file_info(selector)
        return found

    def _full(self, path: str) -> str:
        return f"{self._root}/{path}".rstrip("/")

    def _draft(self, path: str) -> Draft:
        if isinstance(self._filesystem, fs.LocalFileSystem):
            return FolderDraft(Path(self._full(path)))
        return UploadDraft(self._filesystem, self._full(path))


def _require_contract(metadata: dict[bytes, bytes] | None, uri: str) -> None:
    found = (metadata or {}).get(CONTRACT_KEY, b"none").decode(errors="replace")
    if found not in map(str, CONTRACT_VERSIONS):
        raise LakeError(
            "landing-version",
            f"expected landing contract version {' or '.join(map(str, CONTRACT_VERSIONS))} in {uri}, got {found} instead; "
            "read it with the Penstock that wrote it, or copy its table again",
        )

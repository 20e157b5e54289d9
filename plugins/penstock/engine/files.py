"""Files by the names that Iceberg and the landing zone give them: on this machine, or in an object store.

Landing zone and lake may be two stores, each with a login of its own. A task reaches both by Arrow's file systems, and
DuckDB reads and writes through them too: no extension is downloaded, nothing is configured twice.

Through fsspec as it is, DuckDB asks five times for a file's size and age at every opening, and opens it for every statement. And
its threads share one handle, whose place is moved between the seek and the read of another: pages of wrong bytes. So it is shown a
store as immutable files, each asked for once.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import duckdb
import pyarrow as pa
from fsspec.spec import AbstractFileSystem
from pyarrow import fs

from penstock.engine.failure import EngineFailure, shown
from penstock.store_trouble import trouble_of_os

_ON_DISK = ("file://", "file:")
SMALL = 1 << 20
"""So small a file is read as a whole: its footer and columns would be four requests."""
KEPT = 32 << 20
_BRACKETED = re.compile(r"\[(.)\]")
_EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True)
class Store:
    """Reach one store; without a `system` it is the disk. DuckDB knows another store by the name `protocol`."""

    protocol: str
    system: fs.FileSystem | None = field(default=None, repr=False)

    def path(self, location: str) -> str:
        """Return a location (`/x`, `file:/x`, `file:///x`, `s3://bucket/key`) as DuckDB takes it."""
        if self.system is not None:
            return f"{self.protocol}://{_key(location)}"
        return path_on_disk(location)

    def read(self, location: str, offset: int, length: int) -> bytes:
        """Return a part of a file; raises EngineFailure where it is gone or shorter."""
        with _store_failures(location), self._arrow().open_input_file(self._arrow_path(location)) as file:
            found: bytes = file.read_at(length, offset)
        if len(found) != length:
            raise EngineFailure.at(location, "a file that was cut short")
        return found

    def make_folder(self, location: str) -> None:
        """Make the folder of a file to write; object stores have none. Raises EngineFailure."""
        if self.system is not None:
            return
        with _store_failures(location):
            self._arrow().create_dir(path_on_disk(location).rpartition("/")[0], recursive=True)

    def write(self, location: str, content: bytes) -> None:
        """Write a new file; raises EngineFailure."""
        self.make_folder(location)
        with (
            _store_failures(location),
            self._arrow().open_output_stream(self._arrow_path(location), compression=None) as file,
        ):
            file.write(content)

    def delete(self, location: str) -> None:
        """Delete a file that nothing refers to; raises EngineFailure."""
        with _store_failures(location):
            self._arrow().delete_file(self._arrow_path(location))

    def register(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Let DuckDB read and write this store."""
        if self.system is not None:
            connection.register_filesystem(DuckFiles(self.protocol, self.system))

    def _arrow(self) -> fs.FileSystem:
        return self.system or fs.LocalFileSystem()

    def _arrow_path(self, location: str) -> str:
        return path_on_disk(location) if self.system is None else _key(location)


@contextmanager
def _store_failures(location: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        trouble = trouble_of_os(error)
        raise EngineFailure(type(error).__name__, shown(location), unreadable=True, trouble=trouble) from None


@dataclass(frozen=True)
class Files:
    """Reach the files of a landing zone and of a lake."""

    landing: Store = Store("landing")
    lake: Store = Store("lake")


def is_on_disk(location: str) -> bool:
    """Return whether a location is one of this machine's disk."""
    return location.startswith(("/", *_ON_DISK))


def path_on_disk(location: str) -> str:
    """Return the path of a location on the disk, as it is: neither Spark nor Iceberg decodes `%`."""
    for prefix in _ON_DISK:
        if location.startswith(prefix):
            return location.removeprefix(prefix)
    return location


def _key(location: str) -> str:
    return location.partition("://")[2]


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Add the file to what a store says, for DuckDB hands on the text of an exception alone."""
    try:
        yield
    except OSError as error:
        raise type(error)(f"{error} at {path}") from None


class DuckFiles(AbstractFileSystem):  # type: ignore[misc]
    """Show a store of Arrow's under a protocol of its own, for the life of one task."""

    cachable = False

    def __init__(self, protocol: str, system: fs.FileSystem) -> None:
        super().__init__()
        self.protocol = protocol
        self._system = system
        self._lock = threading.Lock()
        self._opened: dict[str, _Content] = {}
        self._room = KEPT

    def open(self, path: str, mode: str = "rb", **_: Any) -> Any:
        """Return a file to read at any place, from any thread, or a new one to write."""
        if "r" in mode:
            return _Reader(self._content(self._key(path)))
        self.forget(path)
        with _named(path):
            return self._system.open_output_stream(self._key(path), compression=None)

    def glob(self, path: str, **_: Any) -> list[str]:
        """Return the one path that is meant: each character that would be a pattern is in brackets."""
        return [_BRACKETED.sub(r"\1", path)]

    def size(self, path: str) -> int:
        """Return a file's size; raises FileNotFoundError."""
        return self._content(self._key(path)).size

    def modified(self, path: str) -> datetime:  # noqa: ARG002  # no file is ever changed
        """Return the same moment for every file."""
        return _EPOCH

    def isfile(self, path: str) -> bool:  # noqa: ARG002
        """Return that there is no such file: DuckDB asks of what it is about to write, under a name that nothing has."""
        return False

    def isdir(self, path: str) -> bool:  # noqa: ARG002
        """Return that there is no such folder: object stores have none."""
        return False

    def forget(self, path: str) -> None:
        """Forget what was read of a file that is written now."""
        with self._lock:
            self._opened.pop(self._key(path), None)

    def _key(self, path: str) -> str:
        return path.removeprefix(f"{self.protocol}://")

    def _content(self, key: str) -> _Content:
        with self._lock, _named(key):
            if key not in self._opened:
                self._opened[key] = made = _Content(key, self._system.open_input_file(key))
                if made.size <= min(SMALL, self._room):
                    made.read_whole()
                    self._room -= made.size
            return self._opened[key]


class _Content:
    """Hold an open file, or all of its bytes."""

    def __init__(self, key: str, file: pa.NativeFile) -> None:
        self._key = key
        self.size = int(file.size())
        self._file = file
        self._bytes: bytes | None = None

    def read_whole(self) -> None:
        self._bytes = self._file.read_at(self.size, 0)
        self._file.close()

    def read_at(self, count: int, at: int) -> bytes:
        if self._bytes is not None:
            return self._bytes[at : at + count]
        with _named(self._key):
            found: bytes = self._file.read_at(count, at)
        return found


class _Reader:
    """Read a file; every thread has a place of its own in it."""

    def __init__(self, content: _Content) -> None:
        self._content = content
        self._place = threading.local()

    def seek(self, at: int, whence: int = 0) -> int:
        assert whence == 0, "DuckDB seeks from the beginning"  # noqa: S101
        self._place.at = at
        return at

    def tell(self) -> int:
        return int(getattr(self._place, "at", 0))

    def read(self, count: int = -1) -> bytes:
        at = self.tell()
        found = self._content.read_at(self._content.size - at if count < 0 else count, at)
        self._place.at = at + len(found)
        return found

    def close(self) -> None:
        """Leave the file open: other statements of the task read it, too."""

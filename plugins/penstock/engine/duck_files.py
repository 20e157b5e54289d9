"""An object store as DuckDB reads and writes it: immutable files, each asked for once.

Through fsspec as it is, DuckDB asks five times for a file's size and age at every opening, and opens it for every statement. And
its threads share one handle, whose place is moved between the seek and the read of another: pages of wrong bytes.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from fsspec.spec import AbstractFileSystem
from pyarrow import fs

SMALL = 1 << 20
"""So small a file is read as a whole: its footer and columns would be four requests."""
KEPT = 32 << 20
_BRACKETED = re.compile(r"\[(.)\]")
_EPOCH = datetime.fromtimestamp(0, UTC)


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

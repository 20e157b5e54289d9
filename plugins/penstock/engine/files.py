"""Files by the names that Iceberg and the landing zone give them: on this machine, or in an object store.

Landing zone and lake may be two stores, each with a login of its own. A task reaches both by Arrow's file systems, and
DuckDB reads and writes through them too: no extension is downloaded, nothing is configured twice.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import duckdb
from pyarrow import fs

from penstock.engine.duck_files import DuckFiles
from penstock.engine.failure import EngineFailure, shown
from penstock.store_trouble import trouble_of_os

_ON_DISK = ("file://", "file:")


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

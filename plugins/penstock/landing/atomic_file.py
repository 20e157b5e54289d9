"""A file in the making: it becomes visible under its name in one step, when it is whole and durable.

In a folder the draft lies next to its target, is fsynced and renamed; what we make there is for our account alone. For a store it is a local file without a
name that is uploaded at the end: a killed process leaves nothing behind, and no half object is ever listed.
"""

import errno
import os
import resource
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import IO

import pyarrow as pa
from pyarrow import fs

PART = ".part"
_CHUNK = 8 << 20


class Draft(ABC):
    """Hold one file in the making; every method may raise OSError."""

    @abstractmethod
    def open(self) -> pa.NativeFile:
        """Return the file to write into."""

    @abstractmethod
    def persist(self) -> int:
        """Make what was written durable; return its size in bytes. Several drafts may do so at once."""

    @abstractmethod
    def show(self) -> Path | None:
        """Let the file appear; return the folder that has to be synchronised then, if any."""

    def publish(self) -> int:
        """Make what was written durable, then visible; return its size in bytes."""
        size = self.persist()
        show_all([self])
        return size

    @abstractmethod
    def discard(self) -> None:
        """Leave nothing behind."""


class FolderDraft(Draft):
    """Hold a file in the making in the folder where it will appear."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._place = target.with_name(f".{target.name}.{token_hex(4)}{PART}")
        self._file: pa.NativeFile | None = None

    def open(self) -> pa.NativeFile:
        _make_durably(self._target.parent)
        self._file = _one_more(self._place)
        return self._file

    def persist(self) -> int:
        assert self._file is not None  # noqa: S101  # for the type checker: a draft is opened first
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return self._place.stat().st_size

    def show(self) -> Path:
        self._place.replace(self._target)
        return self._target.parent

    def discard(self) -> None:
        if self._file is not None:
            with suppress(OSError):  # what could not be written need not be
                self._file.close()
        self._place.unlink(missing_ok=True)


class UploadDraft(Draft):
    """Hold a file in the making on local disk until a store gets it whole."""

    def __init__(self, filesystem: fs.FileSystem, key: str) -> None:
        self._filesystem = filesystem
        self._key = key
        self._spool: IO[bytes] | None = None

    def open(self) -> pa.NativeFile:
        self._spool = tempfile.TemporaryFile()  # noqa: SIM115  # closed by publish or discard
        return pa.PythonFile(self._spool, mode="w")

    def persist(self) -> int:
        assert self._spool is not None  # noqa: S101  # for the type checker: a draft is opened first
        size = self._spool.tell()
        self._spool.seek(0)
        with self._filesystem.open_output_stream(self._key) as sink:
            shutil.copyfileobj(self._spool, sink, _CHUNK)
        self._spool.close()
        stored = self._filesystem.get_file_info(self._key).size
        if stored != size:
            raise OSError(f"the store holds {stored} of {size} bytes")
        return size

    def show(self) -> None:
        """Do nothing: an object is there once it is whole."""

    def discard(self) -> None:
        if self._spool is not None:
            with suppress(OSError):  # what could not be written need not be
                self._spool.close()


def show_all(drafts: Iterable[Draft]) -> None:
    """Let durable files appear, each at once, and see that all their names outlive a power cut; raises OSError."""
    for folder in {draft.show() for draft in drafts}:
        if folder is not None:
            _sync(folder)


def _one_more(path: Path) -> pa.NativeFile:
    """Open a file for writing; a window of a thousand relations may need this process's whole allowance."""
    try:
        return _new_file(path)
    except OSError as error:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if error.errno != errno.EMFILE or soft == hard:
            raise
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        return _new_file(path)


def _new_file(path: Path) -> pa.NativeFile:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    return pa.OSFile(str(path), "wb")


def _make_durably(folder: Path) -> None:
    """Make a folder and its missing parents, for our account alone, so that they outlive a power cut."""
    if folder.is_dir():
        return
    _make_durably(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    _sync(folder.parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

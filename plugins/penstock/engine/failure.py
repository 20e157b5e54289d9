"""What ends a task, without the text of DuckDB's errors, which may quote values."""

from __future__ import annotations

import re

import duckdb

_OF_STORE = re.compile(r"StoreError: (\w+) at \S")
_OF_FILE = frozenset({"FileNotFoundError", "AccessDenied"})
_FILE_NAME = re.compile(r"[\w.%=-]+\.(?:parquet|puffin)\b")
_UNREADABLE = (duckdb.IOException, duckdb.InvalidInputException, duckdb.SerializationException)
_NO_SPACE = ("No space left on device", "Disk quota exceeded", "Too many open files", "failed to offload")


class EngineFailure(Exception):  # noqa: N818  # `kind` names the error
    """Say what kind of error ended a task, which file it is about, and whether the machine is at fault."""

    def __init__(self, kind: str, file: str | None, *, unreadable: bool, of_the_machine: bool = False) -> None:
        self.kind = kind
        self.file = file
        self.unreadable = unreadable
        self.of_the_machine = of_the_machine
        super().__init__(f"{kind}{f' at {file}' if file else ''}")

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return _made, (self.kind, self.file, self.unreadable, self.of_the_machine)

    @classmethod
    def at(cls, location: str, kind: str) -> EngineFailure:
        """Return the failure to read a file of the lake."""
        return cls(kind, location.rpartition("/")[2], unreadable=True)

    @classmethod
    def of(cls, error: duckdb.Error) -> EngineFailure:
        """Keep of an error of DuckDB what may be said."""
        text = str(error)
        file, of_store = _FILE_NAME.search(text), _OF_STORE.search(text)
        if of_store:
            of_file = of_store[1] in _OF_FILE
            return cls(of_store[1], file[0] if file else None, unreadable=of_file, of_the_machine=not of_file)
        return cls(
            type(error).__name__,
            file[0] if file else None,
            unreadable=file is not None and isinstance(error, _UNREADABLE),
            of_the_machine=any(each in text for each in _NO_SPACE),
        )


def _made(kind: str, file: str | None, unreadable: bool, of_the_machine: bool) -> EngineFailure:
    return EngineFailure(kind, file, unreadable=unreadable, of_the_machine=of_the_machine)

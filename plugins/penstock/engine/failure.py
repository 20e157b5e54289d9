"""What ends a task, without the text of DuckDB's errors, which may quote values."""

from __future__ import annotations

import re
from functools import partial

import duckdb

from penstock.store_trouble import Trouble, trouble_of

_FILE = re.compile(r"[^\s\"'(\[,]+\.(?:parquet|puffin|avro|metadata\.json)\b")
_PARTITION = re.compile(r"=[^/]*(?=/)")
_UNREADABLE = (duckdb.IOException, duckdb.InvalidInputException, duckdb.SerializationException)
# What a file system of Python's raises, DuckDB hands on as text, and shows the statement below.
_OF_PYTHON = re.compile(r"^([\w.]+): (.*)", re.MULTILINE | re.DOTALL)
_SPILLED = "failed to offload"


class EngineFailure(Exception):  # noqa: N818  # `kind` names the error
    """Say what kind of error ended a task, which file it is about, and what is the matter with the store or the machine."""

    def __init__(self, kind: str, file: str | None, *, unreadable: bool, trouble: Trouble | None = None) -> None:
        self.kind = kind
        self.file = file
        self.unreadable = unreadable
        self.trouble = trouble
        super().__init__(f"{kind}{f' at {file}' if file else ''}")

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return partial(EngineFailure, unreadable=self.unreadable, trouble=self.trouble), (self.kind, self.file)

    @classmethod
    def at(cls, location: str, kind: str) -> EngineFailure:
        """Return the failure to read a file of the lake."""
        return cls(kind, shown(location), unreadable=True)

    @classmethod
    def of(cls, error: duckdb.Error) -> EngineFailure:
        """Keep of an error of DuckDB what may be said."""
        text = str(error).partition("\n\nLINE ")[0]
        file = file_of(text)
        if type(error) is duckdb.Error and text.startswith("Traceback"):
            raised = _OF_PYTHON.search(text.partition("\n")[2])
            kind, words = (raised[1], raised[2]) if raised else ("Error", "")
            return cls(kind, file, unreadable=file is not None, trouble=trouble_of([words]))
        kind = type(error).__name__
        if isinstance(error, duckdb.IOException):
            return cls(kind, file, unreadable=file is not None, trouble=trouble_of([text]))
        if isinstance(error, duckdb.OutOfMemoryException) and _SPILLED in text:
            return cls(kind, None, unreadable=False, trouble=Trouble.FULL)
        return cls(kind, file, unreadable=file is not None and isinstance(error, _UNREADABLE))


def file_of(text: str) -> str | None:
    """Return the first file of the lake or the landing zone that a text names, with its whole path."""
    found = _FILE.search(text)
    return shown(found[0]) if found else None


def shown(location: str) -> str:
    """Return a location without the values of partitions, which are values of rows."""
    return _PARTITION.sub("=..", location)

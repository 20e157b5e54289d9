"""The fill of changelogs that Airflow orders of Spark, and what Spark answers, as JSON next to the landing zone."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from penstock.jobs.pointers import Pointer
from penstock.lake.columns import LakeColumn

_PLAN_VERSION = 1


@dataclass(frozen=True, slots=True)
class ChangelogFile:
    """Name one landing file that may hold changes of the interval; `columns` are the fields of `new` and `old`, `reals` those of type `real`."""

    uri: str
    rows: int
    bytes: int
    columns: tuple[str, ...]
    era: int
    reals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MissingTransaction:
    """Name a transaction of the interval that no landing file has; the time is its commit's, or the first that it may be."""

    era: int
    commit_lsn: int
    xid: int | None
    committed_at: datetime


@dataclass(frozen=True, slots=True)
class ChangelogTable:
    """Order one changelog: the fields that it must have at least, where the interval's changes lie, and what is missing."""

    target: tuple[str, ...]
    columns: tuple[LakeColumn, ...]
    files: tuple[ChangelogFile, ...]
    missing: tuple[MissingTransaction, ...] = ()

    @property
    def empty(self) -> bool:
        """Return whether there is nothing to write."""
        return not self.files and not self.missing

    @property
    def bytes(self) -> int:
        """Return the bytes to read."""
        return sum(file.bytes for file in self.files)


@dataclass(frozen=True, slots=True)
class ChangelogPlan:
    """Order one fill: in every changelog, the changes committed in `[from_time, upto_time)` become those of the files.

    `landing_uri`, `landing_options` and `task_memory` are those of a merge plan.
    """

    pipeline: str
    attempt: str
    catalog: str
    from_time: datetime
    upto_time: datetime
    era: int
    through_lsn: int
    tables: tuple[ChangelogTable, ...]
    parallel_tables: int = 4
    table_properties: dict[str, str] = field(default_factory=dict)
    landing_uri: str = ""
    landing_options: dict[str, str] = field(default_factory=dict)
    task_memory: int = 512 << 20
    version: int = _PLAN_VERSION

    def dumps(self) -> str:
        """Return the plan as JSON text."""
        return json.dumps(asdict(self), indent=1, default=datetime.isoformat)

    @classmethod
    def loads(cls, text: str) -> ChangelogPlan:
        """Read what `dumps` wrote; raises ValueError on another version."""
        data = json.loads(text)
        if data["version"] != _PLAN_VERSION:
            raise ValueError(f"a changelog plan must have version {_PLAN_VERSION}, got {data['version']} instead")
        data |= {name: datetime.fromisoformat(data[name]) for name in ("from_time", "upto_time")}
        return cls(tables=tuple(map(_table, data.pop("tables"))), **data)


@dataclass(frozen=True, slots=True)
class ChangelogTableResult:
    """Report one changelog: what was written and what went, or why it stays as it was."""

    target: tuple[str, ...]
    pointer: Pointer | None
    snapshot_id: int | None
    rows: int
    removed: int
    seconds: float
    slug: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ChangelogResult:
    """Report one fill: nothing of it is visible before its pointers are moved."""

    pipeline: str
    attempt: str
    tables: tuple[ChangelogTableResult, ...]
    seconds: float

    def dumps(self) -> str:
        """Return the result as JSON text."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def loads(cls, text: str) -> ChangelogResult:
        """Read what `dumps` wrote."""
        data = json.loads(text)
        return cls(tables=tuple(map(_table_result, data.pop("tables"))), **data)


def _table(data: dict[str, Any]) -> ChangelogTable:
    return ChangelogTable(
        target=tuple(data["target"]),
        columns=tuple(LakeColumn(**column) for column in data["columns"]),
        files=tuple(
            ChangelogFile(**{**file, **{name: tuple(file[name]) for name in ("columns", "reals")}})
            for file in data["files"]
        ),
        missing=tuple(
            MissingTransaction(**{**each, "committed_at": datetime.fromisoformat(each["committed_at"])})
            for each in data["missing"]
        ),
    )


def _table_result(data: dict[str, Any]) -> ChangelogTableResult:
    pointer = data.pop("pointer")
    target = tuple(data.pop("target"))
    return ChangelogTableResult(target=target, pointer=Pointer.from_json(pointer) if pointer else None, **data)

"""What Iceberg's own table says of itself, as it was when the catalog was asked: one look, however much is asked of it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from penstock.lake import properties
from penstock.lake.columns import LakeColumn, LakeField, Number, lake_type, numbers_of
from penstock.values.defaults import shown_text
from penstock_spark.session import java

_INNER = ("element-id", "key-id", "value-id")
_COMPACTION = "replace"


@dataclass(frozen=True, slots=True)
class InnerField:
    """Describe a field of a struct: its type as Spark SQL writes it, its id, and those of what is in it."""

    lake_type: str
    ids: tuple[int, ...]


@dataclass(frozen=True)
class IcebergTable:
    """Hold a loaded table; `java` is Iceberg's."""

    java: Any

    @cached_property
    def fields(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the top-level fields of the schema by name. Source: Iceberg specification, "Schemas" (JSON)."""
        schema = json.loads(java("org.apache.iceberg.SchemaParser").toJson(self.java.schema()))
        return {field["name"]: field for field in schema["fields"]}

    @property
    def columns(self) -> tuple[LakeColumn, ...]:
        """Return the columns, their types as Spark SQL writes them."""
        return tuple(LakeColumn(name, lake_type(field["type"])) for name, field in self.fields.items())

    @property
    def columns_known(self) -> tuple[LakeField, ...]:
        """Return the columns with their ids and comments."""
        return tuple(
            LakeField(field["id"], name, lake_type(field["type"]), field.get("doc"))
            for name, field in self.fields.items()
        )

    @property
    def attnums(self) -> dict[int, Number] | None:
        """Return which of the source's columns each field is, None where the table does not say."""
        return numbers_of(self.property(properties.COLUMNS))

    def ids(self, name: str) -> tuple[int, ...]:
        """Return a column's field id, then those of what is in it."""
        return _ids(self.fields[name])

    def inner(self, name: str) -> dict[str, InnerField]:
        """Return the fields of a struct by name."""
        fields = self.fields[name]["type"]["fields"]
        return {field["name"]: InnerField(lake_type(field["type"]), _ids(field)) for field in fields}

    def default(self, name: str) -> str | None:
        """Return a column's initial default as text that DuckDB casts."""
        field = self.fields[name]
        value = field.get("initial-default")
        return None if value is None else shown_text(value, lake_type(field["type"]))

    @property
    def metadata_file(self) -> str:
        """Return the metadata file that the catalog showed."""
        return str(self.java.operations().current().metadataFileLocation())

    @property
    def folder(self) -> str:
        """Return the folder below which the table keeps its files."""
        return str(self.java.location())

    @property
    def main(self) -> int | None:
        """Return main's snapshot, or None for a table that never had one."""
        snapshot = self.java.currentSnapshot()
        return None if snapshot is None else int(snapshot.snapshotId())

    def property(self, name: str) -> str | None:
        """Return a table property."""
        value = self.java.properties().get(name)
        return None if value is None else str(value)

    def parquet(self, location: str) -> tuple[Any, int, int]:
        """Return the builder of a data file of the table from a file that is there, with its footer's metrics; its bytes and rows."""
        file = self.java.io().newInputFile(location)
        config = java("org.apache.iceberg.MetricsConfig").forTable(self.java)
        metrics = java("org.apache.iceberg.parquet.ParquetUtil").fileMetrics(file, config)
        made = java("org.apache.iceberg.DataFiles").builder(self.java.spec()).withInputFile(file).withMetrics(metrics)
        return made, int(file.getLength()), int(metrics.recordCount())

    def is_ours(self, expected: int | None) -> bool:
        """Return whether main is at the expected snapshot, compactions since then aside."""
        last = [None, *self.since(expected)][-1]
        return last == expected

    def since(self, expected: int | None) -> list[int]:
        """Return main's snapshot and those below it, as far as they are compactions, down to the expected one."""
        passed: list[int] = []
        snapshot = self.java.currentSnapshot()
        while snapshot is not None:
            passed.append(int(snapshot.snapshotId()))
            if passed[-1] == expected or snapshot.operation() != _COMPACTION:
                break
            parent = snapshot.parentId()
            snapshot = None if parent is None else self.java.snapshot(parent)
        return passed

    def main_since(self, moment: int) -> list[int]:
        """Return the snapshots that were main at or after a moment, in milliseconds since 1970."""
        history = [(int(entry.timestampMillis()), int(entry.snapshotId())) for entry in self.java.history()]
        passed = [snapshot for (_, snapshot), (until, _) in pairwise(history) if until >= moment]
        return passed + [snapshot for _, snapshot in history[-1:]]


def planned(scan: Any) -> Iterator[Any]:
    """Yield the tasks of a scan: each a data file, with its deletes."""
    files = scan.planFiles()
    tasks = files.iterator()
    while tasks.hasNext():
        yield tasks.next()
    files.close()


def totals(snapshot: Any, *names: str) -> tuple[int, ...]:
    """Return totals of a snapshot's summary: of `records`, `data-files` and so on."""
    return tuple(int(snapshot.summary().get(f"total-{name}") or 0) for name in names)


def _ids(field: Mapping[str, Any]) -> tuple[int, ...]:
    inner = field["type"] if isinstance(field["type"], dict) else {}
    return (field["id"], *(inner[part] for part in _INNER if part in inner))

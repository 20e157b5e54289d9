"""A table's next state, made in an Iceberg transaction that nobody commits: until the publish, the catalog shows nothing of it.

The transaction's snapshots go into a metadata file of ours, and whoever holds the catalog's pointer moves it there or
does not. What a killed run leaves is files that nothing names, which maintenance removes.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.engine.failure import EngineFailure
from penstock.engine.order import MergeAnswer, NewFile, NewVector, TargetFile, Vector
from penstock.errors import LakeError
from penstock.jobs.plans import TableSize
from penstock.jobs.pointers import Pointer, place_of
from penstock.lake import properties
from penstock.lake.columns import Evolution, numbers_text
from penstock.shapes.mirror_column import MirrorColumn
from penstock_spark import table_layout
from penstock_spark.iceberg_table import IcebergTable, planned, totals
from penstock_spark.lake_table import METADATA_PARSER, LakeTable, commit_marked, next_metadata_name
from penstock_spark.session import java
from penstock_spark.table_layout import unsupported

FEW_FILES = 8


@dataclass
class Staging:
    """Prepare commits on top of main; `there` is the table as the transaction has it by now, `files` are the data files that the table has by now, `data_files` and `vectors` Iceberg's own."""

    table: LakeTable
    there: IcebergTable
    marks: Mapping[str, str]
    files: dict[str, TargetFile] = field(default_factory=dict)
    data_files: dict[str, Any] = field(default_factory=dict)
    vectors: dict[str, Any] = field(default_factory=dict)
    _held_files: set[str] = field(default_factory=set)
    _held_vectors: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        operations = self.there.java.operations()
        self.base = operations.current()
        self.transaction = java("org.apache.iceberg.Transactions").newTransaction(self.table.sql_name, operations)
        self._loaded = self.there.java

    def evolve(self, wanted: Evolution, columns: Sequence[MirrorColumn]) -> None:
        """Give the table the wanted columns, and say in its properties which of the source's columns they are."""
        if wanted:
            self.table.evolve(self.transaction, wanted)
            self.there = IcebergTable(self.transaction.table())
            if wanted.widened:  # values of partitions are then of the wider types
                self._load_again()
        text = numbers_text(columns, {column.name: self.there.ids(column.name)[0] for column in columns})
        if self.there.property(properties.COLUMNS) != text:
            self.transaction.updateProperties().set(properties.COLUMNS, text).commit()

    def plan_again(self) -> None:
        """Learn which data files the table has by now, with what this transaction has written and deleted."""
        self._load_again()
        self.vectors, self.files, self.data_files = {}, {}, {}
        self.plan_files({})

    def _load_again(self) -> None:
        """Load the table as this transaction has it by now: a transaction's own table cannot be scanned.

        Read from its text, its partitions' transforms are made for the types that its columns have by now.
        """
        parser, io = java(METADATA_PARSER), self.there.java.io()
        metadata = parser.fromJson(parser.toJson(self.transaction.currentMetadata()))
        fixed = java("org.apache.iceberg.StaticTableOperations")(metadata, io)
        self._loaded = java("org.apache.iceberg.BaseTable")(fixed, self.table.sql_name)

    @property
    def many_files(self) -> bool:
        """Return whether main has so many data files that leaving some out is worth a look at the batch's keys."""
        head = self._head()
        return head is not None and totals(head, "data-files")[0] > FEW_FILES

    def plan_files(self, bounds: Mapping[str, tuple[int, int]]) -> None:
        """Learn which data files main has, without those that hold no row within these bounds of columns.

        Raises LakeError("foreign-commit") on deletes that are no deletion vectors.
        """
        for task in planned(self._loaded.newScan().filter(_within(self._loaded_names(bounds)))):
            file, deletes = task.file(), task.deletes()
            path, vector = str(file.location()), None
            if str(file.format()) != "PARQUET":
                raise unsupported(self.table, f"a data file of the format {file.format()}")
            for number in range(deletes.size()):
                vector = deletes.get(number)
                if str(vector.format()) != "PUFFIN":
                    raise LakeError(
                        "foreign-commit",
                        f"expected only deletion vectors on {'.'.join(self.table.target)}, got delete files of another "
                        "writer; copy the table again",
                    )
                self.vectors[path] = vector
            self.data_files[path] = file
            self.files[path] = TargetFile(path, int(file.recordCount()), None if vector is None else _vector(vector))

    def _loaded_names(self, bounds: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
        """Return bounds under the names that the columns have in the table that was loaded, which may be others by now."""
        schema = self._loaded.schema()
        return {str(schema.findColumnName(self.there.ids(name)[0])): bound for name, bound in bounds.items()}

    def data_paths(self) -> list[str]:
        """Return the data files that main has."""
        return [str(task.file().location()) for task in planned(self._loaded.newScan())]

    def whole(self, bounds: Mapping[str, tuple[int, int]]) -> frozenset[str]:
        """Return those of the planned files that hold no row outside of these bounds of columns, as their metrics say."""
        strict = java("org.apache.iceberg.expressions.StrictMetricsEvaluator")(
            self.there.java.schema(), _within(bounds)
        )
        return frozenset(path for path, file in self.data_files.items() if strict.eval(file))

    def live_rows(self, path: str) -> int:
        """Return how many rows of a planned file are not gone."""
        return self.files[path].rows - self._gone_from(path)

    def replace_all(self, added: Sequence[Any]) -> tuple[int, int]:
        """Replace every row by those of Iceberg data files, in one commit; returns how many went and how many came."""
        update = self.transaction.newOverwrite().overwriteByRowFilter(
            java("org.apache.iceberg.expressions.Expressions").alwaysTrue()
        )
        for data_file in added:
            update = update.addFile(data_file)
        commit_marked(update, self.marks)
        self.vectors, self.files, self.data_files = {}, {}, {}
        for data_file in added:
            self._know(data_file)
        summary = self._head().summary()
        gone, gone_before, came = (
            int(summary.get(name) or 0) for name in ("deleted-records", "removed-position-deletes", "added-records")
        )
        return gone - gone_before, came

    def append(self, added: Sequence[NewFile]) -> None:
        """Commit new data files."""
        self.append_files([self.data_file(new) for new in added])

    def append_files(self, added: Sequence[Any]) -> None:
        """Commit Iceberg data files as new ones."""
        update = self.transaction.newAppend()
        for data_file in added:
            update = update.appendFile(data_file)
            self._know(data_file)
        commit_marked(update, self.marks)

    def apply(self, answer: MergeAnswer, removed: Collection[str] = ()) -> None:
        """Commit what a task has written; of the planned files, the `removed` ones go."""
        self.hold(answer)
        self.commit_held(removed)

    def hold(self, answer: MergeAnswer) -> None:
        """Take over what a task has written, for a later commit, after its vectors have been held to the files that are known.

        Iceberg checks none of that: a vector of a file that it does not know deletes nothing, in silence.
        """
        self._require_sound(answer)
        added = [self.data_file(new) for new in answer.files]
        self._held_vectors |= {vector.data_file: self._delete_file(vector) for vector in answer.vectors}
        for vector in answer.vectors:
            self.files[vector.data_file] = replace(self.files[vector.data_file], vector=vector.vector)
        for data_file in added:
            self._know(data_file)
            self._held_files.add(str(data_file.location()))

    def commit_held(self, removed: Collection[str] = ()) -> None:
        """Commit what was taken over, all at once: of several vectors of a file the last, and no file whose rows are all gone again."""
        for path in [path for path in self._held_files if not self.live_rows(path)]:
            self._forget(path)
        if not (self._held_files or self._held_vectors or removed):
            return
        update = self.transaction.newRowDelta()
        for path in self._held_files:
            update = update.addRows(self.data_files[path])
        for path, delete in self._held_vectors.items():
            update = update.addDeletes(delete)
            if path in self.vectors:
                update = update.removeDeletes(self.vectors[path])
        for path in removed:
            update = update.removeRows(self.data_files[path])
            if path in self.vectors:
                update = update.removeDeletes(self.vectors[path])
        head, touched = self._head(), [*(self._held_vectors.keys() - self._held_files), *removed]
        if touched and head is not None:
            update = update.validateFromSnapshot(int(head.snapshotId())).validateDataFilesExist(touched)
            update = update.validateDeletedFiles().validateNoConflictingDeleteFiles()
        commit_marked(update, self.marks)
        self.vectors |= self._held_vectors
        for path in removed:
            self._forget(path)
        self._held_files, self._held_vectors = set(), {}

    def _forget(self, path: str) -> None:
        del self.files[path], self.data_files[path]
        self.vectors.pop(path, None)
        self._held_vectors.pop(path, None)
        self._held_files.discard(path)

    def stage(self) -> tuple[Pointer, int]:
        """Write the metadata file with the transaction's snapshots on main; return its pointer, and main's snapshot there."""
        if self._head() is None:  # every table of a cut has a snapshot
            self.append(())
        staged = (
            java("org.apache.iceberg.TableMetadata")
            .buildFrom(self.transaction.currentMetadata())
            .setProperties(dict(self.marks))
            .discardChanges()
            .build()
        )
        operations = self.there.java.operations()
        location = operations.metadataFileLocation(next_metadata_name(self.base))
        java(METADATA_PARSER).write(staged, operations.io().newOutputFile(location))
        head = staged.currentSnapshot()
        stamped = max(int(staged.lastUpdatedMillis()), int(head.timestampMillis()))
        pointer = Pointer(place_of(self.table.target), self.base.metadataFileLocation(), location, stamped=stamped)
        return pointer, int(head.snapshotId())

    def size(self) -> TableSize:
        """Return what the transaction's last snapshot says of the table's size."""
        rows, gone, files, size = totals(self._head(), "records", "position-deletes", "data-files", "files-size")
        return TableSize(rows - gone, files, size)

    def data_file(self, new: NewFile) -> Any:
        """Return a written file as Iceberg's data file, with the metrics of its own footer."""
        made, _, rows = self.there.parquet(new.path)
        if rows != new.rows:
            raise EngineFailure.at(new.path, f"a footer of {rows} rows instead of {new.rows}")
        if new.partition:
            spec = self.there.java.spec()
            values = json.dumps(table_layout.partition_values(spec, new.partition))
            parsed = java("org.apache.iceberg.SingleValueParser").fromJson(spec.partitionType(), values)
            made = made.withPartition(parsed)
        return made.build()

    def _know(self, data_file: Any) -> None:
        path = str(data_file.location())
        self.files[path] = TargetFile(path, int(data_file.recordCount()))
        self.data_files[path] = data_file

    def _require_sound(self, answer: MergeAnswer) -> None:
        unknown = [vector.data_file for vector in answer.vectors if vector.data_file not in self.files]
        grown = sum(vector.vector.cardinality - self._gone_from(vector.data_file) for vector in answer.vectors)
        deleted = answer.counts.get("rows_deleted", 0)
        if unknown or grown != deleted:
            raise EngineFailure(
                f"deletion vectors of {grown} rows instead of {deleted}, {len(unknown)} of them of unknown files",
                None,
                unreadable=False,
            )

    def _gone_from(self, path: str) -> int:
        file = self.files.get(path)
        return file.vector.cardinality if file and file.vector else 0

    def _delete_file(self, new: NewVector) -> Any:
        vector = new.vector
        data_file = self.data_files[new.data_file]
        spec = self.there.java.specs().get(data_file.specId())
        made = java("org.apache.iceberg.FileMetadata").deleteFileBuilder(spec).ofPositionDeletes()
        if spec.isPartitioned():
            made = made.withPartition(data_file.partition())
        made = made.withFormat("puffin").withPath(vector.path).withFileSizeInBytes(new.file_bytes)
        made = made.withReferencedDataFile(new.data_file).withContentOffset(vector.offset)
        return made.withContentSizeInBytes(vector.length).withRecordCount(vector.cardinality).build()

    def _head(self) -> Any:
        return self.transaction.currentMetadata().currentSnapshot()


def _vector(file: Any) -> Vector:
    return Vector(
        str(file.location()), int(file.contentOffset()), int(file.contentSizeInBytes()), int(file.recordCount())
    )


def _within(bounds: Mapping[str, tuple[int, int]]) -> Any:
    expressions = java("org.apache.iceberg.expressions.Expressions")
    found = expressions.alwaysTrue()
    for name, (low, high) in bounds.items():
        found = getattr(expressions, "and")(found, expressions.greaterThanOrEqual(name, low))
        found = getattr(expressions, "and")(found, expressions.lessThanOrEqual(name, high))
    return found

"""A lake of folders: tables whose commits are lists in memory, merged by the engine alone, without Spark or a catalog."""

import itertools
import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.contract.manifest import FileRef
from penstock.engine import duck, task, vectors
from penstock.engine.files import Files
from penstock.engine.order import Column, Layout, MergeAnswer, MergeOrder, TargetFile
from penstock.engine.target import scan_sql
from penstock.engine.task import Answer, Shape
from penstock.errors import LakeError
from penstock.jobs.plans import TableResult
from penstock.lake.columns import MISFITS, lake_column
from penstock.shapes.mirror_column import MirrorColumn
from penstock.shapes.pg_snapshot import Snapshot
from tests.spark.histories import Transaction
from tests.spark.workbench import Table, _text


def _inner(lake_type: str) -> int:
    return 2 if lake_type.startswith("map") else 1 if lake_type.startswith("array") else 0


@dataclass
class FolderTable(Table):
    """A table of such a lake: its data files, with what is gone from them."""

    data: dict[str, TargetFile] = field(default_factory=dict)
    ids: dict[str, tuple[int, ...]] = field(default_factory=dict)
    defaults: dict[str, str | None] = field(default_factory=dict)

    def grow(self) -> None:
        """Give ids to the columns that have none; those that come later have a default."""
        later = bool(self.ids)
        for name, type_ in [
            *((each.name, lake_column(each).type) for each in self.columns),
            (MISFITS.name, MISFITS.type),
        ]:
            if name not in self.ids:
                first = sum(map(len, self.ids.values())) + 1
                self.ids[name] = tuple(range(first, first + 1 + _inner(type_)))
                if later:
                    self.defaults[name] = next(each.missing_text for each in self.columns if each.name == name)

    def order_of(self, files: Sequence[FileRef], *, copy: bool = False, **changes: Any) -> MergeOrder:
        self.grow()
        folder = self.folder / f"table{self.oid}"
        folder.mkdir(exist_ok=True)
        columns = tuple(
            Column(
                each.name,
                lake_column(each).type,
                self.ids[each.name],
                key=each.key,
                missing_text=each.missing_text,
                default=self.defaults.get(each.name),
            )
            for each in self.columns
        )
        wanted: dict[str, Any] = {
            "columns": columns,
            "misfits_ids": self.ids[MISFITS.name],
            "landed": tuple(files),
            "target": tuple(self.data.values()),
            "layout": Layout(f"file://{folder}", changes.pop("partition", ())),
            "copy": copy,
            "identity": self.identity,
        }
        return MergeOrder(**{**wanted, **changes})

    def commit(self, answer: MergeAnswer) -> None:
        gone = sum(new.vector.cardinality - self.gone_from(new.data_file) for new in answer.vectors)
        assert gone == answer.counts.get("rows_deleted", 0), "Spark's driver refuses such an answer"
        if answer.truncated:
            self.data.clear()
        for new in answer.vectors:
            file = self.data[new.data_file]
            self.data[new.data_file] = TargetFile(file.path, file.rows, new.vector)
        for made in answer.files:
            self.data[made.path] = TargetFile(made.path, made.rows)

    def live(self) -> int:
        return sum(file.rows - self.gone_from(path) for path, file in self.data.items())

    def gone_from(self, path: str) -> int:
        vector = self.data[path].vector
        return vector.cardinality if vector else 0


@dataclass
class FolderLake:
    """Many such tables; as much of a workbench as histories ask for."""

    folder: Path
    tables: list[FolderTable] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    shape: Shape | None = None
    files: Files = field(default_factory=Files)

    def __post_init__(self) -> None:
        self.clock = itertools.count(100, 8)

    def table(self, *columns: MirrorColumn, identity: str | None = None) -> FolderTable:
        has_key = any(column.key for column in columns)
        made = FolderTable(columns, ("lake", "public", "t"), self.folder, identity or ("d" if has_key else "f"))
        self.tables.append(made)
        return made

    def land(self, table: Table, *transactions: Transaction, names: Sequence[str] | None = None) -> None:
        table.land(transactions, self.clock, names)

    def merge(self) -> list[TableResult]:
        return [self._merge(table) for table in self.tables]

    def merge_of(
        self, table: Table, *transactions: Transaction, names: Sequence[str] | None = None
    ) -> list[TableResult]:
        """Land these transactions of a table, and merge."""
        self.land(table, *transactions, names=names)
        return self.merge()

    def rows(self, table: FolderTable) -> Counter[tuple[Any, ...]]:
        """Return the rows as texts, a value that does not fit as its misfit."""
        found: Counter[tuple[Any, ...]] = Counter()
        for *values, misfits in _rows(table):
            texts = misfits or {}
            named = zip(table.columns, values, strict=True)
            found[tuple(texts.get(column.name, _text(value)) for column, value in named)] += 1
        return found

    def _carried_out(self, order: MergeOrder) -> MergeAnswer:
        if self.shape is None:
            return task.merge(order, self.files)
        return task.merge_spread(order, task.fitted(order, self.shape), self.files, one_after_the_other)

    def _merge(self, table: FolderTable) -> TableResult:
        counts: Counter[str] = Counter()
        refused = None
        before = dict(table.data)
        try:
            if table.copy_files is not None:
                counts["rows_deleted"] += table.live()
                table.data.clear()
                answer = self._carried_out(table.order_of(table.copy_files, copy=True, **self.options))
                table.commit(answer)
                counts.update(answer.counts)
            if table.files:
                seen = None
                if table.copy_snapshot:
                    seen = Snapshot.parse(table.copy_snapshot)
                there = table.live()
                answer = self._carried_out(table.order_of(table.files, seen_by=seen, **self.options))
                table.commit(answer)
                counts.update(answer.counts)
                counts["rows_deleted"] += there if answer.truncated else 0
                for file in table.files:
                    landed = file.counts
                    counts.update(
                        inserts=landed.inserts,
                        updates=landed.updates,
                        deletes=landed.deletes,
                        truncates=landed.truncates,
                    )
        except LakeError as error:
            refused, table.data = error, before
        table.files, table.copy_files, table.copy_snapshot = [], None, None
        return TableResult(
            oid=table.oid,
            target=table.target,
            pointer=None,
            snapshot_id=None,
            counts=counts,
            seconds=0,
            paused_slug=refused.slug if refused else None,
            paused_reason=refused.message if refused else None,
        )


def one_after_the_other(work: Sequence[Callable[[], Answer]]) -> list[Answer]:
    """Carry out the tasks of a split batch here, each as if its order had been sent."""
    return [pickle.loads(pickle.dumps(each))() for each in work]  # our own


def _rows(table: FolderTable) -> Iterator[list[Any]]:
    if not table.data:
        return
    order = table.order_of([])
    gone = vectors.gone(Files().lake, order.target, range(len(order.target)))
    every = range(len(order.columns))
    with duck.connect(order.resources, Files()) as db:
        columns = ", ".join([*(f"t{i}" for i in every), "tm"])
        read_all = f"select file_index, file_row_number, {columns} from {scan_sql(db, order, every)}"
        for file, position, *values in db.rows(read_all):
            if position not in gone.get(file, ()):
                yield values

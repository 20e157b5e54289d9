"""Random histories of a table whose key changes over and over, within a transaction too, against rows that were kept by hand."""

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.contract.manifest import FileRef
from penstock.contract.schema import landing_schema
from penstock.engine import segments
from penstock.engine.order import Resources
from penstock.engine.segments import Segment
from penstock.engine.task import Shape
from tests.engine.folder_lake import FolderLake, FolderTable
from tests.spark.histories import UNCHANGED, D, Event, I, T, U
from tests.spark.workbench import _row, column, counted

COLUMNS = (column("h", "int4"), column("a"), column("b"), column("c", "int4"), column("big"))
NAMES = tuple(each.name for each in COLUMNS)
BY_A, BY_B, BY_BOTH, ROWS, INSERTS = ("h", "a"), ("h", "b"), ("b", "h", "a"), (), None
"""By what changes find their rows; with INSERTS there are no others."""

Row = dict[str, Any]


@dataclass
class Source:
    """A table with many small histories, told apart by `h`, and the key that it has now; `full` sends whole old rows."""

    random: random.Random
    rows: dict[int, list[Row]] = field(default_factory=dict)
    key: tuple[str, ...] | None = BY_A
    full: bool = False

    def switch(self) -> Iterator[Event]:
        """Change the key to one by which rows can be told apart, after what hinders that has been deleted."""
        key = self.random.choice([BY_A, BY_B, BY_BOTH, ROWS, INSERTS])
        if key and self.key is INSERTS and any(self._twins(key)):
            key = ROWS
        if key:
            for twin in list(self._twins(key)):
                yield self._delete(twin)
        self.key, self.full = key, key == ROWS or self.random.random() < 0.2

    def change(self) -> Event:
        if self.key is not INSERTS and self.random.random() < 0.004:
            self.rows.clear()
            return T()
        h = self.random.randrange(40)
        there = self.rows.setdefault(h, [])
        what = self.random.random()
        if not there or self.key is INSERTS or what < 0.3:
            made = self._free(
                {"h": h, "a": self._word("a"), "b": self._word("b"), "c": None, "big": self._word("L")}, None
            )
            if made is not None:
                there.append(made)
                return I(**made)
        if not there or self.key is INSERTS:
            return self._free_insert(h)
        row = self.random.choice(there)
        return self._delete(row) if what < 0.5 else self._update(row)

    def _free_insert(self, h: int) -> Event:
        number = self.random.randrange(1 << 30)
        self.rows[h].append({"h": h, "a": f"a{number}", "b": f"b{number}", "c": 1, "big": "L"})
        return I(**self.rows[h][-1])

    def _update(self, row: Row) -> Event:
        new = {**row, "c": self.random.randrange(9)}
        for name in ("a", "b", "big"):
            if self.random.random() < 0.3:
                new[name] = self._word(name[0])
        free = self._free(new, row)
        new = {**row, "c": new["c"]} if free is None else free
        before, moved = dict(row), any(row[name] != new[name] for name in self.key or ())
        row.update(new)
        if self.random.random() < 0.6 and before["big"] == new["big"]:
            new = {**new, "big": UNCHANGED}
        if self.full:
            return U(before, full=True, **new)
        return U({name: before[name] for name in self.key or ()} if moved else None, **new)

    def _delete(self, row: Row) -> Event:
        there = self.rows[row["h"]]
        del there[next(at for at, each in enumerate(there) if each is row)]
        return D(full=True, **row) if self.full else D(**{name: row[name] for name in self.key or ()})

    def _free(self, row: Row, but: Row | None) -> Row | None:
        taken = [each for each in self.rows[row["h"]] if each is not but]
        clash = self.key and any(all(each[name] == row[name] for name in self.key) for each in taken)
        return None if clash else row

    def _twins(self, key: tuple[str, ...]) -> Iterator[Row]:
        seen = set()
        for row in itertools.chain.from_iterable(map(list, self.rows.values())):
            known = tuple(row[name] for name in key)
            if known in seen:
                yield row
            seen.add(known)

    def _word(self, prefix: str) -> str:
        return f"{prefix}{self.random.randrange(4)}"


def landed(table: FolderTable, events: list[tuple[Any, int, Event]]) -> list[FileRef]:
    """Write the events, a file for each key, whichever took turns."""
    found = []
    for number, key in enumerate(dict.fromkeys(key for key, *_ in events)):
        rows = [
            _row(event, NAMES, 8 * (place // 7) + 8, place % 7, None) for each, place, event in events if each == key
        ]
        path = table.folder / f"{table.oid}.{events[0][1]}.{number}.parquet"
        pq.write_table(pa.Table.from_pylist(rows, schema=landing_schema(NAMES)), path)
        found.append(FileRef(path.as_uri(), len(rows), 0, NAMES, counted(rows), key=key[0] or ()))
    return found


def merge(lake: FolderLake, table: FolderTable, events: list[tuple[Any, int, Event]]) -> tuple[Segment, ...]:
    files = landed(table, events)
    cut = segments.cut(files, Resources(), lake.files)
    for segment in cut:
        order = table.order_of([])
        columns = tuple(replace(each, key=each.name in (segment.key or ())) for each in order.columns)
        order = replace(
            order,
            columns=columns,
            landed=tuple(files[at] for at in segment.files),
            identity="d",
            since=segment.since,
            until=segment.until,
            stop_on_conflict=True,
        )
        table.commit(lake._carried_out(order))
    return cut


@pytest.mark.parametrize(
    ("shape", "batches"),
    [
        pytest.param(None, 4, id="a few batches"),
        pytest.param(None, 12, id="by one task", marks=pytest.mark.slow),
        pytest.param(Shape(3, 2, 2), 12, id="by many tasks", marks=pytest.mark.slow),
    ],
)
def test_random_histories_with_changes_of_the_key_end_as_they_were_written(
    folder_lake: FolderLake, shape: Shape | None, batches: int
) -> None:
    folder_lake.shape = shape
    source, places = Source(random.Random(20263 + (shape is None))), itertools.count()
    table = folder_lake.table(*COLUMNS)
    most = 0
    for _ in range(batches):
        events = []
        for _ in range(source.random.randrange(1, 7)):
            for _ in range(source.random.randrange(150)):
                event = source.change()
                events.append(((source.key, source.full), next(places), event))
            before = (source.key, source.full)
            events += [(before, next(places), event) for event in source.switch()]
        if events:
            most = max(most, len(merge(folder_lake, table, events)))
        expected = Counter(
            tuple(None if row[name] is None else str(row[name]) for name in NAMES)
            for rows in source.rows.values()
            for row in rows
        )
        assert folder_lake.rows(table) == expected
    assert most > 2


FIRST, SECOND, THIRD = Segment(BY_A, (0,), None, 10), Segment(BY_B, (1,), 10, 20), Segment(BY_A, (0, 2), 20, None)


@pytest.mark.parametrize(
    ("place", "before", "after"),
    [
        (9, (replace(FIRST, until=9),), (replace(FIRST, since=9), SECOND, THIRD)),
        (10, (FIRST,), (SECOND, THIRD)),
        (11, (FIRST, replace(SECOND, until=11)), (replace(SECOND, since=11), THIRD)),
        (20, (FIRST, SECOND), (THIRD,)),
        (99, (FIRST, SECOND, replace(THIRD, until=99)), (replace(THIRD, since=99),)),
    ],
)
def test_what_lies_before_a_place_and_what_does_not(
    place: int, before: tuple[Segment, ...], after: tuple[Segment, ...]
) -> None:
    every = (FIRST, SECOND, THIRD)

    assert (segments.before(every, place), segments.after(every, place)) == (before, after)

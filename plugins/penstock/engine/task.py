"""One table's batch, from an order to an answer: a function of files, in any process, without Spark or a catalog.

A large one goes over many tasks: no task hands a row to another, and no row passes through Spark. First the tasks of a grid
resolve some of the keys (a hash part of them) against some of the data files. What they find out fits into bitmaps, however wide the
rows are: which landed rows live, and which rows of the table go. Then tasks write the rows that live, each those of some
landed files. So keys are read once per hash part, texts once.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import product
from operator import add
from typing import Protocol, TypeVar

from pyroaring import BitMap

from penstock.contract.manifest import FileRef
from penstock.engine import duck, keyed, keyless, vectors
from penstock.engine.changes import open_changes
from penstock.engine.duck import literal
from penstock.engine.failure import EngineFailure
from penstock.engine.files import Files
from penstock.engine.order import (
    Cell,
    MergeAnswer,
    MergeOrder,
    NewVector,
    ResolvedCell,
    Resources,
    TargetFile,
    Written,
    new_location,
)
from penstock.errors import LakeError

Answer = TypeVar("Answer")
KEY_ROWS = 4 << 20
"""So many changes are one task's to resolve: fewer, and that every task reads all keys costs more than it saves."""
TARGET_ROWS = 32 << 20
WRITTEN_ROWS = 1 << 20


def merge(order: MergeOrder, files: Files) -> MergeAnswer:
    """Carry an order out: write data files and deletion vectors, and say what is to be committed.

    Raises LakeError of a kind that pauses the table, and EngineFailure; what was written then counts for nothing.
    """
    with duck.connect(order.resources, files, len(order.columns)) as db:
        if order.copy:
            return keyless.load(db, order)
        changes = open_changes(db, order)
        if order.keys:
            return keyed.apply(db, changes)
        return keyless.append(db, changes) if order.grows_only else keyless.apply(db, changes)


def attempt(work: Callable[[], Answer]) -> Answer | LakeError | EngineFailure:
    """Do a piece of work, and return what it raises: plain data, for a task in another process."""
    try:
        return work()
    except (LakeError, EngineFailure) as error:
        return error


def probe(files: Files, folder: str) -> None:
    """See whether engine and store work at all: write a file of one row below a folder of the lake, read and delete it.

    Raises EngineFailure.
    """
    location = new_location(f"{folder.rstrip('/')}/data", "-probe.parquet")
    files.lake.make_folder(location)
    with duck.connect(Resources(), files) as db:
        db.execute(f"copy (select 1 as one) to {literal(files.lake.path(location))} (format parquet)")
        db.row(f"select one from read_parquet({db.stored([location])})")
    files.lake.delete(location)


class Spread(Protocol):
    """Carry pieces of work out, somewhere, and return their answers in their order, or raise what one raised."""

    def __call__(self, work: Sequence[Callable[[], Answer]], /) -> list[Answer]: ...


@dataclass(frozen=True, slots=True)
class Shape:
    """Say over how many tasks a batch goes: hash parts of the keys, groups of data files, and who writes landed rows."""

    keys: int = 1
    targets: int = 1
    writers: int = 1

    @property
    def whole(self) -> bool:
        """Return whether it is one task."""
        return self == Shape()


def shape_of(order: MergeOrder, slots: int) -> Shape:
    """Return how to spread an order over so many tasks at once."""
    changes, rows = sum(file.rows for file in order.landed), sum(file.rows for file in order.target)
    keys = min(slots, _parts(changes, KEY_ROWS))
    targets = min(slots // keys, _parts(rows, TARGET_ROWS))
    return fitted(order, Shape(keys, targets, min(slots, _parts(changes, WRITTEN_ROWS))))


def fitted(order: MergeOrder, shape: Shape) -> Shape:
    """Return the shape without what the order does not lend itself to.

    A table without a key under REPLICA IDENTITY FULL is one task: which of equal rows go is for one to say.
    """
    if order.copy:
        return Shape(writers=max(1, min(shape.writers, len(order.landed))))
    if order.keys:
        return replace(shape, targets=max(1, min(shape.targets, len(order.target))))
    return Shape(writers=shape.writers) if order.grows_only and not order.truncates else Shape()


def merge_spread(order: MergeOrder, shape: Shape, files: Files, spread: Spread) -> MergeAnswer:
    """Do as `merge` does, spread over tasks."""
    if shape.whole:
        return spread([partial(merge, order, files)])[0]
    if order.copy or not order.keys:
        groups = _landed_groups(order, shape.writers)
        parts = spread([partial(merge, replace(order, landed=group), files) for group in groups])
        return _joined(parts)
    cells = product(range(shape.keys), enumerate(_groups(order.target, shape.targets)))
    resolved = spread(
        [
            partial(keyed.resolve_cell, replace(order, target=group, cell=Cell(part, shape.keys, first=not at)), files)
            for part, (at, group) in cells
        ]
    )
    found = reduce(add, (each.tally for each in resolved))
    keyed.require_allowed(order, found)
    live = _united(each.live for each in resolved)
    new = sum(
        _write_live(order, live, shape.writers, files, spread), sum((each.written for each in resolved), Written())
    )
    counts = keyed.concluded(order, found, new)
    return MergeAnswer(new.files, _vectors(order, resolved, files), resolved[0].truncated, counts, resolved[0].ops)


def _parts(rows: int, each: int) -> int:
    return max(1, -(-rows // each))


def _groups(target: Sequence[TargetFile], count: int) -> list[tuple[TargetFile, ...]]:
    """Divide data files into groups of about as many rows; one group, if an empty one, where there are none."""
    groups: list[list[TargetFile]] = [[] for _ in range(count)]
    for file in sorted(target, key=lambda each: each.rows, reverse=True):
        min(groups, key=lambda group: sum(each.rows for each in group)).append(file)
    return [tuple(group) for group in groups]


def _landed_groups(order: MergeOrder, count: int) -> list[tuple[FileRef, ...]]:
    """Divide landed files into groups of about as many rows; those of a copy stay whole."""
    total = sum(file.rows for file in order.landed)
    cuts = [total * n // count for n in range(count + 1)]
    groups: list[list[FileRef]] = [[] for _ in range(count)]
    start = 0
    for file in order.landed:
        if order.copy:
            groups[min(start * count // max(total, 1), count - 1)].append(file)
        else:
            for group, low, high in zip(groups, cuts, cuts[1:], strict=False):
                first, after = max(low - start, 0), min(high - start, file.rows)
                if first < after:
                    group.append(replace(file, rows=after - first, only=(first, after)))
        start += file.rows
    return [tuple(group) for group in groups if group]


def _write_live(
    order: MergeOrder, live: Mapping[int, BitMap], writers: int, files: Files, spread: Spread
) -> list[Written]:
    """Write the rows of landed files that live."""
    numbers = {file.uri: at for at, file in enumerate(order.landed)}
    wanted = []
    for group in _landed_groups(order, writers):
        own = [(file, live.get(numbers[file.uri], BitMap()) & _range(file)) for file in group]
        chosen = [(file, rows) for file, rows in own if rows]
        if chosen:
            part = replace(order, landed=tuple(file for file, _ in chosen))
            bitmaps = [rows.serialize() for _, rows in chosen]
            wanted.append(partial(keyed.write_live, part, bitmaps, files))
    return spread(wanted)


def _range(file: FileRef) -> BitMap:
    return BitMap(range(*file.only)) if file.only else BitMap(range(file.rows))


def _vectors(order: MergeOrder, resolved: Iterable[ResolvedCell], files: Files) -> tuple[NewVector, ...]:
    numbers = {file.path: at for at, file in enumerate(order.target)}
    going = _united({numbers[path]: rows for path, rows in each.going.items()} for each in resolved)
    gone = vectors.gone(files.lake, order.target, going)
    return vectors.write_vectors(files.lake, order.layout.folder, order.target, going, gone)


def _united(parts: Iterable[Mapping[int, bytes]]) -> dict[int, BitMap]:
    """Join bitmaps of rows that the parts name apart; raises EngineFailure where two name the same."""
    found: dict[int, BitMap] = {}
    for part in parts:
        for at, rows in part.items():
            vectors.join(found.setdefault(at, BitMap()), BitMap.deserialize(rows))
    return found


def _joined(parts: Sequence[MergeAnswer]) -> MergeAnswer:
    """Join answers of tasks that only append."""
    counts, ops = Counter[str](), Counter[str]()
    for part in parts:
        counts.update(part.counts)
        ops.update(part.ops or {})
    new = tuple(file for part in parts for file in part.files)
    return MergeAnswer(files=new, counts=dict(counts), ops=None if parts[0].ops is None else dict(ops))

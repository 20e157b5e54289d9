"""A table's changelog: the landed changes of an interval as typed rows, and the places of those that they replace.

Both are functions of files, without Spark or a catalog. A field of an image has the type that the changelog gave it
first; what does not fit it stands as text in the image's map of misfits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby

import duckdb
from pyroaring import BitMap

from penstock.engine import casts, duck, vectors
from penstock.engine.duck import Duck, duck_type, listing, literal
from penstock.engine.failure import EngineFailure
from penstock.engine.files import Files
from penstock.engine.order import (
    MergeAnswer,
    NewFile,
    PartitionField,
    Resources,
    SortField,
    Storage,
    TargetFile,
    new_location,
)
from penstock.engine.target import places
from penstock.engine.write import FileColumn, Layout, write_files
from penstock.errors import LakeError
from penstock.lake.changelog import IMAGES, MISSING, PLAIN_COLUMNS, UNKNOWN, ChangelogFile, MissingTransaction
from penstock.lake.columns import MISFITS_TYPE

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ImageField:
    """Describe a field of `new` and `old`: its type, and its ids in either, each its own first, then what is in it."""

    name: str
    lake_type: str
    ids: tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class FillOrder:
    """Order one changelog's interval, `[start, end)` in microseconds of 1970.

    `ids` are the field ids of the changelog's columns by name, `fields` those of its images. `target` are the data files
    that may hold rows of the interval beside others.
    """

    ids: dict[str, tuple[int, ...]]
    fields: tuple[ImageField, ...]
    landed: tuple[ChangelogFile, ...]
    missing: tuple[MissingTransaction, ...]
    target: tuple[TargetFile, ...]
    start: int
    end: int
    folder: str
    partition: tuple[PartitionField, ...]
    sort: tuple[SortField, ...]
    storage: Storage
    resources: Resources

    @property
    def condition(self) -> str:
        """Return the SQL that is true for a row of the interval."""
        return f"committed_at >= make_timestamptz({self.start}) and committed_at < make_timestamptz({self.end})"

    def parts(self, part_bytes: int) -> list[FillOrder]:
        """Return orders that write the same rows, each of about so many bytes of landed files."""
        parts: list[list[ChangelogFile]] = []
        room = 0
        for file in self.landed:
            if not parts or room < file.bytes:
                parts.append([])
                room = part_bytes
            parts[-1].append(file)
            room -= file.bytes
        orders = [replace(self, landed=tuple(part), missing=(), target=()) for part in parts]
        if self.missing:
            orders.append(replace(self, landed=(), target=()))
        return orders


def microseconds(time: datetime) -> int:
    """Return a time in microseconds of 1970."""
    return (time - _EPOCH) // timedelta(microseconds=1)


def write(order: FillOrder, files: Files) -> tuple[NewFile, ...]:
    """Write the rows of the interval into new data files; raises LakeError("merge-failed") or EngineFailure."""
    try:
        with duck.connect(order.resources, files, len(IMAGES) * len(order.fields)) as db:
            return write_files(db, _layout(order), _rows(db, order))
    except duckdb.OutOfMemoryException as error:
        if (failure := EngineFailure.of(error)).trouble:
            raise failure from None
        raise LakeError(
            "merge-failed",
            f"expected to write a changelog in {order.resources.memory_bytes} bytes of memory and the disk, got out of "
            "memory; raise spark.task_memory, then fill the interval again",
        ) from None
    except duckdb.Error as error:
        raise EngineFailure.of(error) from None


def remove(order: FillOrder, files: Files) -> MergeAnswer:
    """Write deletion vectors for the rows of the interval in the target's files, and count these; raises EngineFailure."""
    if not order.target:
        return MergeAnswer()
    try:
        with duck.connect(order.resources, files) as db:
            found = places(db, _places(db, order))
        gone = vectors.gone(files.lake, order.target, found)
        going = {at: found[at] - gone.get(at, BitMap()) for at in found}
        going = {at: rows for at, rows in going.items() if rows}
        if not going:
            return MergeAnswer()
        written = vectors.write_vectors(files.lake, new_location(order.folder, ".puffin"), order.target, going, gone)
        return MergeAnswer(vectors=written, counts={"rows_deleted": sum(map(len, going.values()))})
    except duckdb.Error as error:
        raise EngineFailure.of(error) from None


def _places(db: Duck, order: FillOrder) -> str:
    """Return the SQL of the places of the interval's rows in the target."""
    source = db.stored(file.path for file in order.target)
    column = f"{{name: 'committed_at', type: '{duck_type('timestamp')}', default_value: null}}"
    schema = f"map {{{order.ids['committed_at'][0]}: {column}}}"
    return (
        f"select file_index, file_row_number from read_parquet({source}, schema = {schema}, file_row_number = true, "
        f"hive_partitioning = false) where {order.condition}"
    )


def _layout(order: FillOrder) -> Layout:
    names = casts.file_names([field.name for field in order.fields])
    columns = [(name, lake_type, casts.field_id(lake_type, order.ids[name])) for name, lake_type in PLAIN_COLUMNS]
    for at, image in enumerate(IMAGES):
        inner = [
            f", {duck.identifier(name)}: {casts.field_id(field.lake_type, field.ids[at])}"
            for name, field in zip(names, order.fields, strict=True)
        ]
        columns.append((image, "struct", f"{{__duckdb_field_id: {order.ids[image][0]}{''.join(inner)}}}"))
        misfits = f"{image}_misfits"
        columns.append((misfits, MISFITS_TYPE, casts.field_id(MISFITS_TYPE, order.ids[misfits])))
    described = {name: FileColumn(name, name, lake_type, ids) for name, lake_type, ids in columns}
    in_order = tuple(described[name] for name in order.ids)
    return Layout(in_order, order.folder, order.partition, order.sort, order.storage)


def _rows(db: Duck, order: FillOrder) -> str:
    """Return the SQL of the changelog's rows: the changes of files of each shape, and what is missing."""
    missing = [f"select {', '.join(_missing(order, each))}" for each in order.missing]
    return "\nunion all by name\n".join([*(_typed(db, order, group) for group in _alike(order.landed)), *missing])


def _missing(order: FillOrder, missing: MissingTransaction) -> Iterator[str]:
    known = {
        "era": missing.era,
        "commit_lsn": missing.commit_lsn,
        "ordinal": 0,
        "op": literal(MISSING),
        "committed_at": f"make_timestamptz({microseconds(missing.committed_at)})",
        "xid": "null" if missing.xid is None else missing.xid,
    }
    for name, lake_type in PLAIN_COLUMNS:
        yield f"cast({known.get(name, 'null')} as {duck_type(lake_type)}) as {name}"
    names = casts.file_names([field.name for field in order.fields])
    fields = zip(names, order.fields, strict=True)
    image_type = ", ".join(f"{duck.identifier(name)} {duck_type(field.lake_type)}" for name, field in fields)
    for image in IMAGES:
        yield f"cast(null as struct({image_type})) as {image}"
        yield f"cast(null as {duck_type(MISFITS_TYPE)}) as {image}_misfits"


@dataclass(frozen=True)
class _Alike:
    """Hold files of one era with the same fields."""

    era: int
    columns: tuple[str, ...]
    reals: tuple[str, ...]
    uris: tuple[str, ...]


def _alike(files: Sequence[ChangelogFile]) -> Iterator[_Alike]:
    def kind(file: ChangelogFile) -> tuple[int, tuple[str, ...], tuple[str, ...]]:
        return file.era, file.columns, file.reals

    for (era, columns, reals), group in groupby(sorted(files, key=kind), kind):
        yield _Alike(era, columns, reals, tuple(file.uri for file in group))


def _typed(db: Duck, order: FillOrder, files: _Alike) -> str:
    """Cast the texts of both images, each once and from its name, and keep next to them what does not fit."""
    names = casts.file_names([field.name for field in order.fields])
    places = {name: at for at, name in enumerate(files.columns, start=1)}
    there = [(at, field, places[field.name]) for at, field in enumerate(order.fields) if field.name in places]
    texts = [
        f"{_text(f'struct_extract_at({image}, {place})', field, files)} as {image}{at}"
        for image in IMAGES
        for at, field, place in there
    ]
    typed = [
        f"{casts.cast_to(f'{image}{at}', field.lake_type)} as typed_{image}{at}"
        for image in IMAGES
        for at, field, _ in there
    ]
    made = []
    for image in IMAGES:
        values = {at: f"typed_{image}{at}" for at, _, _ in there}
        fields = ", ".join(
            f"{literal(name)}: {values.get(at, f'cast(null as {duck_type(field.lake_type)})')}"
            for at, (name, field) in enumerate(zip(names, order.fields, strict=True))
        )
        checked = [(field.name, f"{image}{at}", values[at], field.lake_type) for at, field, _ in there]
        made.append(f"case when {image} is not null then {{{fields}}} end as {image}")
        made.append(f"{casts.misfits(checked)} as {image}_misfits")
    plain = [name for name, _ in PLAIN_COLUMNS if name not in ("era", UNKNOWN)]
    own = ", ".join(["era", *plain, UNKNOWN])
    return (
        f"select {own}, {listing(made)} from (\n"
        f"select {listing([own, *IMAGES, *typed, *_names(there)])} from (\n"
        f"select {files.era}::integer as era, {listing([*plain, f'unchanged as {UNKNOWN}', *IMAGES, *texts])}\n"
        f"from read_parquet({db.landed(files.uris)}, hive_partitioning = false) where {order.condition}))"
    )


def _names(there: Sequence[tuple[int, ImageField, int]]) -> list[str]:
    return [f"{image}{at}" for image in IMAGES for at, *_ in there]


def _text(text: str, field: ImageField, files: _Alike) -> str:
    """Return the SQL of a text; one of `real` in a field of double precision is the value that the server widens it to."""
    wider = field.lake_type == "double" and field.name in files.reals
    return casts.as_double(text, real=True) if wider else text

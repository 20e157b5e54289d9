"""A table's changelog: the landed changes of an interval as typed rows, and the places of those that they replace.

Both are functions of files, without Spark or a catalog. A field of an image has the type that the changelog gave it
first; what does not fit it stands as text in the image's map of misfits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from penstock.contract.manifest import FileRef, alike, microseconds
from penstock.engine import casts, duck
from penstock.engine.duck import Duck, duck_type, listing, literal
from penstock.engine.files import Files
from penstock.engine.order import Layout, MergeAnswer, NewFile, Resources, TargetFile
from penstock.engine.target import take_out
from penstock.engine.write import FileColumn, write_files
from penstock.lake.changelog import IMAGES, MISSING, PLAIN_COLUMNS, UNKNOWN, MissingTransaction
from penstock.lake.columns import MISFITS_TYPE


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
    landed: tuple[FileRef, ...]
    missing: tuple[MissingTransaction, ...]
    target: tuple[TargetFile, ...]
    start: int
    end: int
    layout: Layout
    resources: Resources

    @property
    def condition(self) -> str:
        """Return the SQL that is true for a row of the interval."""
        return f"committed_at >= make_timestamptz({self.start}) and committed_at < make_timestamptz({self.end})"

    def parts(self, part_bytes: int) -> list[FillOrder]:
        """Return orders that write the same rows, each of about so many bytes of landed files."""
        parts: list[list[FileRef]] = []
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


def write(order: FillOrder, files: Files) -> tuple[NewFile, ...]:
    """Write the rows of the interval into new data files; raises LakeError("merge-failed") or EngineFailure."""
    with duck.connect(order.resources, files, len(IMAGES) * len(order.fields)) as db:
        return write_files(db, _columns(order), order.layout, _rows(db, order))


def remove(order: FillOrder, files: Files) -> MergeAnswer:
    """Write deletion vectors for the rows of the interval in the target's files, and count these; raises EngineFailure."""
    if not order.target:
        return MergeAnswer()
    with duck.connect(order.resources, files) as db:
        column = order.ids["committed_at"][0], "committed_at", "timestamp", None
        rows = duck.read_by_id(db.stored(file.path for file in order.target), [column], places=True)
        query = f"select file_index::bigint, file_row_number from {rows} where {order.condition}"
        return take_out(db, order.target, order.layout.folder, query)


def _columns(order: FillOrder) -> list[FileColumn]:
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
    return [described[name] for name in order.ids]


def _rows(db: Duck, order: FillOrder) -> str:
    """Return the SQL of the changelog's rows: the changes of files of each shape, and what is missing."""
    missing = [f"select {', '.join(_missing(order, each))}" for each in order.missing]
    return "\nunion all by name\n".join([*(_typed(db, order, group) for group in alike(order.landed)), *missing])


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


def _typed(db: Duck, order: FillOrder, files: Sequence[tuple[int, FileRef]]) -> str:
    """Cast the texts of both images, and keep next to them what does not fit."""
    _, first = files[0]
    names = casts.file_names([field.name for field in order.fields])
    places = {name: at for at, name in enumerate(first.columns, start=1)}
    there = [(at, field, places[field.name]) for at, field in enumerate(order.fields) if field.name in places]
    texts = [
        (f"{image}{at}", _text(f"struct_extract_at({image}, {place})", field, first), field.lake_type)
        for image in IMAGES
        for at, field, place in there
    ]
    made = []
    for image in IMAGES:
        values = {at: f"{image}{at}" for at, _, _ in there}
        fields = ", ".join(
            f"{literal(name)}: {values.get(at, f'cast(null as {duck_type(field.lake_type)})')}"
            for at, (name, field) in enumerate(zip(names, order.fields, strict=True))
        )
        checked = [(field.name, f"text_{values[at]}", values[at], field.lake_type) for at, field, _ in there]
        made.append(f"case when {image} is not null then {{{fields}}} end as {image}")
        made.append(f"{casts.misfits(checked)} as {image}_misfits")
    plain = [name for name, _ in PLAIN_COLUMNS if name not in ("era", UNKNOWN)]
    known = [f"{first.era}::integer as era", *plain, f"unchanged as {UNKNOWN}", *IMAGES]
    landed = db.landed(file.uri for _, file in files)
    source = f"read_parquet({landed}, hive_partitioning = false) where {order.condition}"
    return f"select {listing(['era', *plain, UNKNOWN, *made])} from ({casts.cast_once(texts, known, source)})"


def _text(text: str, field: ImageField, file: FileRef) -> str:
    """Return the SQL of a text; one of `real` in a field of double precision is the value that the server widens it to."""
    wider = field.lake_type == "double" and field.name in file.reals
    return casts.as_double(text, real=True) if wider else text

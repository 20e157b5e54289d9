"""New data files: typed rows, streamed from a query into Parquet with Iceberg's field ids."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.engine import casts, transforms
from penstock.engine.duck import Duck, identifier, literal
from penstock.engine.order import Layout, LayoutField, MergeOrder, NewFile, Storage, Written
from penstock.errors import LakeError
from penstock.lake.columns import MISFITS

_PARTITION = "penstock_partition"
_IN_FOLDER = re.compile(r"(?:penstock_partition_*=(\d+)/)?[^/]+$")


def typed(order: MergeOrder, source: str, texts: Mapping[int, str], others: Sequence[str] = ()) -> str:
    """Return the SQL of rows with the columns c0, c1, ... and `misfits`, made of the texts that are given by position.

    `others` are names of the source that the rows keep.
    """
    columns = order.columns
    rows = casts.cast_once([(f"c{i}", text, columns[i].lake_type) for i, text in texts.items()], others, source)
    checked = [(columns[i].name, f"text_c{i}", f"c{i}", columns[i].lake_type) for i in texts]
    kept = [*(f"c{i}" for i in texts), *others, f"{casts.misfits(checked)} as misfits"]
    return f"select {', '.join(kept)} from ({rows})"


@dataclass(frozen=True)
class FileColumn:
    """Describe a column of new files: its name in the query, its name in the file, and its ids as COPY takes them."""

    value: str
    name: str
    lake_type: str
    ids: str


def write(db: Duck, order: MergeOrder, rows: str) -> Written:
    """Write the rows of a query (c0, c1, ..., misfits) into new files, those of each partition apart."""
    columns = order.columns
    names = casts.file_names([*(column.name for column in columns), MISFITS.name])
    types = [*(column.lake_type for column in columns), MISFITS.type]
    ids = [*(column.ids for column in columns), order.misfits_ids]
    values = [*(f"c{i}" for i in range(len(columns))), "misfits"]
    described = [
        FileColumn(value, name, type_, casts.field_id(type_, own))
        for value, name, type_, own in zip(values, names, types, ids, strict=True)
    ]
    files = write_files(db, described, order.layout, rows)
    return Written(files, _count_misfits(db, files, identifier(names[-1])))


def write_files(db: Duck, columns: Sequence[FileColumn], layout: Layout, rows: str) -> tuple[NewFile, ...]:
    """Write the rows of a query into new files, those of each partition apart."""
    chosen = [f"{column.value} as {identifier(column.name)}" for column in columns]
    divided = f"file_size_bytes '{layout.storage.file_bytes}B'"
    partitions: list[tuple[Any, ...]] = []
    if layout.partition:
        partitions = _partitions(db, columns, layout, rows)
    if len(partitions) > 1:
        folder = _unlike([column.name for column in columns], _PARTITION)
        rows, divided = "select * from partitioned", f"partition_by ({folder})"
        chosen.append(f"{_PARTITION} as {folder}")
    ids = ", ".join(f"{identifier(column.name)}: {column.ids}" for column in columns)
    db.files.lake.make_folder(f"{layout.folder}/x")
    found = db.rows(
        f"copy (select {', '.join(chosen)} from ({rows}){_sorted(db, columns, layout)}) "
        f"to {literal(db.files.lake.path(layout.folder))} (format parquet, {_compression(layout.storage)}, "
        f"row_group_size_bytes '{layout.storage.row_group_bytes}B', field_ids {{{ids}}}, return_stats, "
        f"filename_pattern '{{uuid}}', overwrite_or_ignore, {divided})"
    )
    files = []
    for path, count, size, *_ in found:
        inside = _IN_FOLDER.search(path)
        assert inside is not None, "DuckDB names the files that it has written"  # noqa: S101
        location = f"{layout.folder}/{inside[0]}"
        if count:
            files.append(NewFile(location, count, size, partitions[int(inside[1] or 0)] if partitions else ()))
        else:
            db.files.lake.delete(location)
    return tuple(files)


def _unlike(names: Sequence[str], wanted: str) -> str:
    """Return a name that is none of these, whatever their case."""
    folded = {name.lower() for name in names}
    while wanted in folded:
        wanted += "_"
    return wanted


def _compression(storage: Storage) -> str:
    level = "" if storage.codec != "zstd" or storage.level is None else f", compression_level {storage.level}"
    return f"compression {storage.codec}{level}"


def _partitions(db: Duck, columns: Sequence[FileColumn], layout: Layout, rows: str) -> list[tuple[Any, ...]]:
    """Make the view `partitioned`, the rows with the number of their partition; return each partition's values.

    The rows are computed twice, at first only what the partition depends on: that costs less than to keep them.
    """
    values = [f"{_transformed(db, columns, each)} as p{n}" for n, each in enumerate(layout.partition)]
    names = [f"p{n}" for n in range(len(values))]
    db.execute(f"create or replace temp view valued as select *, {', '.join(values)} from ({rows})")
    db.execute(f"create or replace temp table partitions as select distinct {', '.join(names)} from valued")
    same = " and ".join(f"v.{name} is not distinct from p.{name}" for name in names)
    db.execute(
        f"create or replace temp view partitioned as select v.*, p.rowid as {_PARTITION} "
        f"from valued v join partitions p on {same}"
    )
    return db.rows(f"select {', '.join(names)} from partitions order by rowid")


def _sorted(db: Duck, columns: Sequence[FileColumn], layout: Layout) -> str:
    if not layout.sort:
        return ""
    fields = ", ".join(
        f"{_transformed(db, columns, each)} {'desc' if each.descending else 'asc'} "
        f"nulls {'first' if each.nulls_first else 'last'}"
        for each in layout.sort
    )
    return f" order by {fields}"


def _transformed(db: Duck, columns: Sequence[FileColumn], field: LayoutField) -> str:
    """Return the SQL of a field of the partition, or of the order of rows."""
    column = columns[field.position]
    return transforms.apply(db, field.transform, column.value, column.lake_type)


def _count_misfits(db: Duck, files: Sequence[NewFile], column: str) -> int:
    if not files:
        return 0
    source = db.stored(file.path for file in files)
    (found,) = db.row(
        f"select coalesce(sum(cardinality({column})), 0)::bigint from read_parquet({source}, hive_partitioning = false) "
        f"where {column} is not null"
    )
    return int(found)


def require_misfits_allowed(order: MergeOrder, misfits: int) -> None:
    """Raise LakeError("misfit-refused") where there are misfits and the pipeline wants none."""
    if misfits and order.stop_on_misfit:
        raise LakeError(
            "misfit-refused",
            f"expected every value to fit its column, got {misfits} that do not; "
            "set merge.on_misfit to keep, or leave the transaction out",
        )


def require_no_conflict(order: MergeOrder, conflicts: Mapping[str, int]) -> None:
    """Raise LakeError("merge-conflict") where a change met what it should not, and the pipeline wants none of that."""
    found = ", ".join(f"{kind} {count}" for kind, count in conflicts.items() if count)
    if found and order.stop_on_conflict:
        raise LakeError(
            "merge-conflict",
            f"expected each change to meet the row it speaks of, and inserts none, got: {found}; "
            "set merge.on_conflict to continue, or copy the table again",
        )

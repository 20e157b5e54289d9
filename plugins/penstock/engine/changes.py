"""The landed changes of a batch as one view, `changes`: columns by position, so that no two names can clash.

A change has a `place` (its order: commit LSN, then ordinal, with one bit to spare), an `id` (the number of its file in
the order, then of the row in that file), and its images as n0, n1, ... and o0, o1, ... What must not be merged is left out here. A file
of an older relation version lacks the columns added since: its rows show there what the source shows. A file of fetched values
lacks what was not fetched: its rows leave that out, as updates leave out unchanged TOAST.

The bounds of partitions are those that the lake's types compare as the server's do; a value that does not fit its type lies in none.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from penstock.contract.manifest import FileRef, alike, total
from penstock.engine.casts import as_double, cast_to
from penstock.engine.duck import Duck, duck_type, listing, literal, text
from penstock.engine.order import Bounds, Column, MergeOrder
from penstock.errors import LakeError
from penstock.shapes.pg_snapshot import Snapshot
from penstock.values.lake_types import STRING

KINDS: Mapping[str, tuple[str, ...]] = {
    "int": ("int", "bigint"),
    "date": ("date",),
    "timestamp": ("timestamp_ntz",),
    "instant": ("timestamp",),
    "text": (STRING,),
}
"""The lake types in which values of each kind of bound are compared as the server compares them."""
INSERT, ARRIVE, UPDATE, DEPART, DELETE = range(5)
"""Kinds of events: an update that moves a row to another key departs there and arrives here."""
PLACE_BITS = 44
PLACE = f"(commit_lsn::hugeint << {PLACE_BITS}) + (ordinal << 1)"
_COLUMNS_AT_ONCE = 1000
ROW_BITS = 36
"""A landed file has fewer rows than 2^36, and a batch fewer files than 2^24: an id and three bits more fit 64."""


@dataclass(frozen=True)
class Changes:
    """Know what is in the view `changes`.

    `unchanged` are the positions of columns that some change leaves out as unchanged TOAST; `holes` says that some value
    of these stays unknown, because no old image supplies it. `truncated`: whatever was there before is gone. `ops`
    counts by `op` where some changes were left out, else None.
    """

    order: MergeOrder
    unchanged: frozenset[int] = frozenset()
    holes: bool = False
    truncated: bool = False
    ops: dict[str, int] | None = None

    @property
    def partial(self) -> tuple[int, ...]:
        """Return the positions of the columns whose last value may stand in an earlier change; never of a key."""
        return tuple(sorted(self.unchanged - set(self.order.keys)))

    def left_out(self, position: int) -> str:
        """Return the SQL of whether a change leaves a column out."""
        return f"coalesce(list_contains(unchanged, {literal(self.order.columns[position].name)}), false)"

    def text(self, position: int) -> str:
        """Return the SQL of a column's text after a change; what `new` leaves out stands in `old`, if anywhere."""
        if position not in self.unchanged:
            return f"n{position}"
        return f"case when {self.left_out(position)} then o{position} else n{position} end"


def open_changes(db: Duck, order: MergeOrder) -> Changes:
    """Make the view `changes`, and say what is in it; raises LakeError("schema-change") on columns that are not the table's."""
    _open_landed(db, order)
    conditions = list(_conditions(order))
    ops = None
    if conditions:
        where = " and ".join(conditions)
        ops = dict(db.rows(f"select op, count(*) from landed where {where} group by op"))
    truncated = False
    if order.truncates:
        where = " and ".join([*conditions, "op = 'T'"])
        (last,) = db.row(f"select max(place) from landed where {where}")
        truncated = last is not None
        if truncated:
            conditions.append(f"place > {last}")
    where = " and ".join([*conditions, "op <> 'T'"])
    db.execute(f"create or replace temp view changes as select * from landed where {where}")
    if not total(order.landed).unchanged:
        return Changes(order, truncated=truncated, ops=ops)
    positions = {column.name: position for position, column in enumerate(order.columns)}
    left_out = db.rows(
        "select name, bool_or(unknown) from (select unnest(unchanged) as name, unknown from ("
        "select distinct unchanged, old_kind is distinct from 'O' as unknown from changes where unchanged is not null"
        ")) group by name",
    )
    keys = set(order.keys)
    return Changes(
        order,
        unchanged=frozenset(positions[name] for name, _ in left_out),
        holes=any(unknown for name, unknown in left_out if positions[name] not in keys),
        truncated=truncated,
        ops=ops,
    )


def require_known_columns(order: MergeOrder, present: Iterable[str | None]) -> None:
    """Raise LakeError("schema-change") where a landed file has a column that the table lacks, unless that is known."""
    strange = sorted({name for name in present if name is not None} - {column.name for column in order.columns})
    if strange:
        raise LakeError(
            "schema-change",
            f"expected landing files with the table's columns only, got {', '.join(strange)} too; copy the table again",
        )


def _open_landed(db: Duck, order: MergeOrder) -> None:
    """Make the view `landed`: read from the files, or, where their versions together have too many columns, from a table.

    A query over all versions holds the columns of each in memory at once; a table takes one after the other, and spills.
    """
    reads = [_scan_sql(db, order, members) for members in alike(order.landed)]
    source = "\nunion all\n".join(reads)
    if len(reads) > 1 and len(reads) * len(order.columns) > _COLUMNS_AT_ONCE:
        db.execute(f"create or replace temp table landed_rows as\n{reads[0]}")
        for read in reads[1:]:
            db.execute(f"insert into landed_rows\n{read}")
        source = "select * from landed_rows"
    db.execute(f"create or replace temp view landed as\n{source}")


def _scan_sql(db: Duck, order: MergeOrder, members: list[tuple[int, FileRef]]) -> str:
    """Return the SQL that reads files of the same columns."""
    first = members[0][1]
    only = first.only
    require_known_columns(order, first.names)
    there = {name: number for number, name in enumerate(first.names, start=1) if name is not None}
    reals = {name for file in order.landed for name in file.reals}

    def value(image: str, column: Column) -> str:
        if column.name in there:
            found = f"struct_extract_at({image}, {there[column.name]})"
        else:
            found = f"case when {image} is not null then {text(column.missing_text)} end"
        # the same value has the same text in all files: whole rows are compared by it
        return as_double(found, real=column.name in first.reals) if column.name in reals else found

    images = [
        f"{value(image, column)} as {image[0]}{position}"
        for image in ("new", "old")
        for position, column in enumerate(order.columns)
    ]
    numbers = ", ".join(str(number) for number, _ in members)
    known = [
        f"{PLACE} as place",
        "commit_lsn",
        "xid",
        "op",
        "old_kind",
        _unchanged(first, order),
        f"(([{numbers}]::bigint[])[file_index::bigint + 1] << {ROW_BITS}) + file_row_number as id",
    ]
    source = db.landed(file.uri for _, file in members)
    some = f"\nwhere file_row_number >= {only[0]} and file_row_number < {only[1]}" if only else ""
    return f"select {listing([*known, *images])}\nfrom read_parquet({source}, file_row_number = true, hive_partitioning = false){some}"


def _unchanged(file: FileRef, order: MergeOrder) -> str:
    """Return the SQL of the columns that a change leaves out, under the table's names."""
    if file.partial:
        left_out = [literal(column.name) for column in order.columns if column.name not in file.names]
        return f"[{', '.join(left_out)}]::varchar[] as unchanged"
    if file.names == file.columns:
        return "unchanged"
    named = " ".join(
        f"when {literal(column)} then {literal(name)}" for column, name in zip(file.columns, file.names, strict=True)
    )
    renamed = f"list_transform(unchanged, lambda c: case c {named} end)"
    return f"nullif(list_filter({renamed}, lambda c: c is not null), []) as unchanged"


def _conditions(order: MergeOrder) -> Iterable[str]:
    """Yield what a change must fulfil: not skipped by the operator, not seen by the copy, not too late."""
    if order.before is not None:
        yield f"commit_lsn < {order.before}"
    if order.since is not None:
        yield f"place >= {order.since}"
    if order.until is not None:
        yield f"place < {order.until}"
    if order.skip:
        yield f"commit_lsn not in ({', '.join(map(str, order.skip))})"
    if order.seen_by is not None:
        yield f"not coalesce({_sees(order.seen_by)}, false)"
    for bounds in order.within:
        yield f"(op = 'T' or {within(order, bounds, partial(_value, order))[0]})"


def _value(order: MergeOrder, position: int) -> str:
    """Return the SQL of a change's value of a column by which partitions are told: before it and after it they are in the same one."""
    return f"({cast_to(f'coalesce(n{position}, o{position})', order.columns[position].lake_type)})"


def within(order: MergeOrder, bounds: Sequence[Bounds], value: Callable[[int], str]) -> tuple[str, list[int]]:
    """Return the SQL of whether a row is within one of the bounds, never NULL, and the positions of the columns that it asks for.

    `value` gives the SQL of the value of the column at a position. Raises LakeError("schema-change").
    """
    names = {column.name: place for place, column in enumerate(order.columns)}
    used = sorted({names[str(column)] for bound in bounds for column, *_ in bound})
    values = {place: value(place) for place in used}
    found = [
        " and ".join(_bound(order, names[str(each[0])], each, values[names[str(each[0])]]) for each in bound)
        for bound in bounds
    ]
    return f"coalesce({' or '.join(f'({each})' for each in found) or 'false'}, false)", used


def _bound(order: MergeOrder, place: int, condition: Sequence[Any], value: str) -> str:
    column, kind, low, high, values = condition
    type_ = order.columns[place].lake_type
    if type_ not in KINDS[kind]:
        raise LakeError(
            "schema-change",
            f"expected column {column}, by which a partition that is gone was bounded, as {' or '.join(KINDS[kind])}, it is "
            f"{type_}; copy the table again",
        )

    def cast(text: str) -> str:
        return f"cast({literal(text)} as {duck_type(type_)})"

    if values is not None:
        return f"{value} in ({', '.join(map(cast, values))})"
    ends = [f"{value} >= {cast(low)}"] if low is not None else []
    ends += [f"{value} < {cast(high)}"] if high is not None else []
    return " and ".join([f"{value} is not null", *ends])


def _sees(snapshot: Snapshot) -> str:
    """Return `Snapshot.sees` as SQL."""
    inside = f" and xid not in ({', '.join(map(str, sorted(snapshot.running)))})" if snapshot.running else ""
    return f"(xid < {snapshot.xmin} or (xid < {snapshot.xmax}{inside}))"

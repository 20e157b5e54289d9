"""The table's own rows: which of them a batch touches, and what only they still know.

Rows also go by bounds alone: because the partition that held them is gone, or because others take their place.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from pyroaring import BitMap

from penstock.engine import duck, vectors
from penstock.engine.casts import cast_to, distinguishable
from penstock.engine.changes import Changes, open_changes, within
from penstock.engine.duck import Duck, literal, read_by_id
from penstock.engine.files import Files
from penstock.engine.order import Bounds, MergeAnswer, MergeOrder, Resources, TargetFile
from penstock.engine.resolve import key_names
from penstock.lake.columns import MISFITS
from penstock.values.lake_types import describe

Places = Mapping[int, BitMap]
"""Rows by the index of their data file in the order: their positions there."""


def scan_sql(db: Duck, order: MergeOrder, positions: Iterable[int]) -> str:
    """Return the SQL that reads columns of the table's data files as t<i>, and the misfits as `tm`, each row with its place."""
    columns = [
        (order.columns[i].ids[0], f"t{i}", order.columns[i].lake_type, order.columns[i].default) for i in positions
    ]
    columns.append((order.misfits_ids[0], "tm", MISFITS.type, None))
    return read_by_id(db.stored(file.path for file in order.target), columns, places=True)


def hold_misfits(paths: Sequence[str], misfits_id: int, names: Iterable[str], files: Files) -> bool:
    """Return whether a row of these data files, be it gone, has a misfit of one of these columns; raises EngineFailure."""
    if not paths:
        return False
    wanted = ", ".join(literal(name) for name in names)
    with duck.connect(Resources(), files) as db:
        rows = read_by_id(db.stored(paths), [(misfits_id, "tm", MISFITS.type, None)])
        return bool(db.rows(f"select 1 from {rows} where list_has_any(map_keys(tm), [{wanted}]) limit 1"))


def match(db: Duck, changes: Changes) -> None:
    """Make the table `matched`: the places of the table's rows under the keys of `touched`, each with that row's id there.

    The server may take two keys for equal whose texts differ, and has one of them at a time: the text says which, so values
    are compared in a form that is as exact. A key that can misfit is NULL where it does not fit, and its text is compared too.
    """
    order = changes.order
    source, target, on = ["rowid as touched", "first"], list[str](), list[str]()
    for name, position in zip(key_names(changes), order.keys, strict=True):
        column = order.columns[position]
        if column.always_fits:
            source.append(name)
            target.append(f"{distinguishable(f't{position}', column.lake_type)} as c{position}")
            on.append(f"t.c{position} = s.{name}")
            continue
        typed = cast_to(name, column.lake_type)
        source.append(f"{distinguishable(f'({typed})', column.lake_type)} as c{position}")
        source.append(f"case when {name} is not null and ({typed}) is null then {name} end as m{position}")
        target.append(f"{distinguishable(f't{position}', column.lake_type)} as c{position}")
        target.append(f"tm[{literal(column.name)}] as m{position}")
        on += [f"t.c{position} is not distinct from s.c{position}", f"t.m{position} is not distinct from s.m{position}"]
    find(db, order, order.keys, target, f"select {', '.join(source)} from touched", on, "touched, first")


def find(
    db: Duck,
    order: MergeOrder,
    positions: Iterable[int],
    values: Sequence[str],
    source: str,
    on: Sequence[str],
    kept: str,
) -> None:
    """Make the table `matched`: the places of the table's rows `t`, of these values, that meet rows `s` of a source, with what is kept of those."""
    db.execute(
        f"create or replace temp table matched as select t.file as file, t.position as position, {kept}\n"
        f"from (select file_index::bigint as file, file_row_number as position, {', '.join(values)} "
        f"from {scan_sql(db, order, positions)}) t\njoin ({source}) s on {' and '.join(on)}"
    )


def leave_out_gone(db: Duck, order: MergeOrder) -> Places:
    """Take out of `matched` what deletion vectors say is gone; return what they say of the files in it."""
    there = [file for (file,) in db.rows("select distinct file from matched")]
    gone = vectors.gone(db.files.lake, order.target, there)
    lookups = {file: vectors.lookup(bitmap, order.target[file].rows) for file, bitmap in gone.items()}
    dead = (
        [
            row[file == each][holds(position[file == each])]
            for row, file, position in db.integers("select rowid, file, position from matched")
            for each, holds in lookups.items()
        ]
        if lookups
        else []
    )
    if sum(map(len, dead)):
        with db.table("dead", {"row": np.concatenate(dead)}):
            db.execute("delete from matched where rowid in (select row from dead)")
    return gone


def places(db: Duck, query: str) -> Places:
    """Return the rows that a query names by file and position; raises EngineFailure where it names one twice."""
    found: dict[int, BitMap] = {}
    for file, position in db.integers(query):
        for each in np.unique(file).tolist():
            vectors.add(found.setdefault(each, BitMap()), position[file == each])
    return found


def take_out(db: Duck, target: Sequence[TargetFile], folder: str, query: str) -> MergeAnswer:
    """Write deletion vectors for the rows of data files that a query names by file and position, but for those that are gone."""
    found = places(db, query)
    gone = vectors.gone(db.files.lake, target, found)
    going = {at: rows for at, named in found.items() if (rows := named - gone.get(at, BitMap()))}
    written = vectors.write_vectors(db.files.lake, folder, target, going, gone)
    return MergeAnswer(vectors=written, counts={"rows_deleted": sum(map(len, going.values()))})


def remove(order: MergeOrder, bounds: Sequence[Bounds], files: Files, *, others: bool = False) -> MergeAnswer:
    """Write deletion vectors for the rows of the order's data files that lie within one of the bounds, or for all `others`.

    Raises LakeError of a kind that pauses the table, and EngineFailure.
    """
    if not order.target:
        return MergeAnswer()
    inside, used = within(order, bounds, "t{}".format)
    chosen = f"not {inside}" if others else inside
    with duck.connect(order.resources, files) as db:
        query = f"select file_index::bigint, file_row_number from {scan_sql(db, order, used)} where {chosen}"
        return take_out(db, order.target, order.layout.folder, query)


def key_bounds(order: MergeOrder, files: Files) -> dict[str, tuple[int, int]]:
    """Return between which values the key's whole numbers lie, old keys included, by column; none where there are no changes.

    Data files outside of them cannot hold a row that the batch touches. Raises EngineFailure.
    """
    columns = [(i, order.columns[i]) for i in order.keys]
    whole = [(i, column) for i, column in columns if describe(column.lake_type).whole_number]
    if not whole:
        return {}
    ends = ", ".join(f"min(k{i}), max(k{i})" for i, _ in whole)
    with duck.connect(order.resources, files, len(order.columns)) as db:
        changes = open_changes(db, order)
        both = " union all ".join(
            "select "
            + ", ".join(f"{cast_to(f'({text(i)})', column.lake_type)} as k{i}" for i, column in whole)
            + " from changes"
            for text in (changes.text, lambda i: f"o{i}")
        )
        found = db.row(f"select {ends} from ({both})")
    return {
        column.name: (low, high)
        for (_, column), low, high in zip(whole, found[::2], found[1::2], strict=True)
        if low is not None
    }

"""A batch onto a table with a key: the rows under touched keys go, and one row per live key comes.

The match reads only the key of the table's files, so the cost follows the change; the row that an update leaves partly
unknown is completed from the lake while it is written.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from pyroaring import BitMap

from penstock.engine import duck, target, vectors, write
from penstock.engine.changes import ARRIVE, DELETE, DEPART, INSERT, ROW_BITS, UPDATE, Changes, open_changes
from penstock.engine.duck import Duck, listing, literal
from penstock.engine.files import Files
from penstock.engine.order import MergeAnswer, MergeOrder, ResolvedCell, Tally, Written
from penstock.engine.resolve import UNKNOWN, key_names, resolve, root_names, state_table
from penstock.engine.target import Places
from penstock.errors import LakeError

_WITHIN = {"update_missing": "off < 0 and live", "delete_missing": "off < 0 and not live", "insert_existing": "off > 0"}


def apply(db: Duck, changes: Changes) -> MergeAnswer:
    """Carry the batch out; raises LakeError of a kind that pauses the table."""
    order = changes.order
    tally, going, gone = _meet(db, changes)
    require_allowed(order, tally)
    new = _write(db, changes, tally, "live", tally.live)
    removed = vectors.write_vectors(db.files.lake, order.layout.folder, order.target, going, gone)
    return MergeAnswer(new.files, removed, changes.truncated, concluded(order, tally, new), changes.ops)


def resolve_cell(order: MergeOrder, files: Files) -> ResolvedCell:
    """Find out what the cell of a split order, of a table with a key, leads to, and write only rows that take values from several places.

    Raises LakeError of a kind that pauses the table, and EngineFailure.
    """
    with duck.connect(order.resources, files) as db:
        changes = open_changes(db, order)
        (tally, going, _), first = _meet(db, changes), order.cell.first
        patched = " or ".join(f"v{i} <> id" for i in changes.partial) or "false"
        which = [f"live and not hole and ({patched})"] if first and changes.partial else []
        if tally.placed:
            which.append("live and id in (select id from filled)")
        chosen = " or ".join(f"({each})" for each in which) or "false"
        (rows,) = db.row(f"select count(*) from touched where {chosen}")
        new = _write(db, changes, tally, chosen, rows)
        live: Places = {}
        if first:
            row = f"id & {(1 << ROW_BITS) - 1}"
            query = f"select id >> {ROW_BITS} as file, {row} as position from touched where live and not ({patched})"
            live = target.places(db, query)
    return ResolvedCell(
        new,
        live={at: rows.serialize() for at, rows in live.items()},
        going={order.target[at].path: rows.serialize() for at, rows in going.items()},
        tally=tally if first else Tally(met=tally.met, placed=tally.placed),
        truncated=changes.truncated,
        ops=changes.ops,
    )


def write_live(order: MergeOrder, live: Sequence[bytes], files: Files) -> Written:
    """Write the rows of the order's landed files that live, as each one's bitmap says; all their values are their own.

    Raises EngineFailure.
    """
    ids = [(at << ROW_BITS) + vectors.positions(BitMap.deserialize(rows)) for at, rows in enumerate(live)]
    with duck.connect(order.resources, files) as db:
        changes = open_changes(db, order)
        texts = {i: changes.text(i) for i in range(len(order.columns))}
        with db.table("live", {"id": np.concatenate(ids)}):
            return write.write(db, order, write.typed(order, "changes semi join live using (id)", texts))


def require_allowed(order: MergeOrder, found: Tally) -> None:
    """Raise LakeError: "merge-conflict" where that is not allowed, "divergence" where the lake lacked rows that updates left partly out."""
    write.require_no_conflict(order, conflicts_of(found))
    if found.placed != found.holes:
        raise LakeError(
            "divergence",
            f"expected the lake to have the rows of {found.holes} updates that leave values out, got {found.placed}; "
            "copy the table again",
        )


def concluded(order: MergeOrder, found: Tally, new: Written) -> dict[str, int]:
    """Count what a batch has done whose rows are written; raises LakeError("misfit-refused") or, where they are not those that live, ("divergence")."""
    write.require_misfits_allowed(order, new.misfits)
    if new.rows != found.live:
        raise LakeError(
            "divergence",
            f"expected to write {found.live} rows, wrote {new.rows}; copy the table again, and report this",
        )
    counts = {"rows_deleted": found.met.total(), "rows_written": new.rows, "misfits": new.misfits}
    return {**conflicts_of(found), **counts}


def _meet(db: Duck, changes: Changes) -> tuple[Tally, Places, Places]:
    """Resolve the batch, and find the table's rows under its keys: they go; return those, too, that were gone before.

    The tables `touched`, `matched` and `filled` are made.
    """
    order = changes.order
    resolve(db, changes)
    tally = _tally(db, changes)
    if not (tally.first and order.target) or changes.truncated:
        return tally, {}, {}
    target.match(db, changes)
    gone = target.leave_out_gone(db, order)
    met = Counter(dict(db.rows("select first, count(*) from matched group by first")))
    going = target.places(db, "select file, position from matched")
    placed = _fill_holes(db, changes) if tally.holes and going else 0
    return replace(tally, met=met, placed=placed), going, gone


def _write(db: Duck, changes: Changes, tally: Tally, which: str, rows: int) -> Written:
    """Write the chosen rows of `touched`; of the misfits those are counted that are news."""
    if not rows:
        return Written()
    filled = tally.placed > 0
    new = write.write(db, changes.order, _rows(db, changes, which, filled=filled))
    if new.misfits and filled:
        return replace(new, misfits=new.misfits - _count_kept_misfits(db, changes))
    return new


def _tally(db: Duck, changes: Changes) -> Tally:
    """Count the keys of `touched`; raises LakeError("schema-change") where one has a NULL."""
    any_null = " or ".join(f"{name} is null" for name in key_names(changes))
    live, holes, keyless = db.row(
        f"select count(*) filter (where live), count(*) filter (where hole), count(*) filter (where {any_null}) from touched"
    )
    if keyless:
        raise LakeError(
            "schema-change",
            f"expected every change to carry the key, got {keyless} keys with a NULL; "
            "the replica identity has changed: copy the table again",
        )
    first = Counter(dict(db.rows("select first, count(*) from touched group by first")))
    off = (f"coalesce(sum(abs(off)) filter (where {each}), 0)::bigint" for each in _WITHIN.values())
    within = db.row(f"select {listing(off)} from {state_table(changes)} where off <> 0")
    return Tally(first, Counter(dict(zip(_WITHIN, within, strict=True))), live, holes)


def conflicts_of(found: Tally) -> dict[str, int]:
    """Count, by the first event of each key, the keys that should have had a row and had none, and the reverse.

    Also the rows of one key that were told, within the batch, to come where one was, or to change or go where none was: at the source the key was none.
    """
    first, met, within = found.first, found.met, found.within
    return {
        "update_missing": sum(first[kind] - met[kind] for kind in (UPDATE, DEPART)) + within["update_missing"],
        "delete_missing": first[DELETE] - met[DELETE] + within["delete_missing"],
        "insert_existing": met[INSERT] + met[ARRIVE] + within["insert_existing"],
    }


def _fill_holes(db: Duck, changes: Changes) -> int:
    """Make the table `filled`: for live keys with an unknown value the lake's row under its root key; return how many."""
    same = " and ".join(
        f"k.{key} is not distinct from h.{root}"
        for root, key in zip(root_names(changes), key_names(changes), strict=True)
    )
    db.execute(
        "create or replace temp table holes as select p.file, p.position, h.id from matched p "
        "join (select k.rowid as touched, h.id from touched k "
        f"join (select * from touched where hole) h on {same}) h using (touched)"
    )
    values = [f"t{i}" for i in changes.partial]
    if _may_misfit(changes):
        values.append("tm")
    rows = target.scan_sql(db, changes.order, changes.partial)
    db.execute(
        f"create or replace temp table filled as select h.id, {', '.join(values)} from {rows} t "
        "join holes h on t.file_index = h.file and t.file_row_number = h.position"
    )
    (placed,) = db.row("select count(*) from filled")
    return int(placed)


def _rows(db: Duck, changes: Changes, which: str, *, filled: bool) -> str:
    """Return the SQL of the rows to append: streamed from the landed files, each chosen by the id of its change."""
    order = changes.order
    if not changes.partial:
        source = f"changes semi join (select id from touched where {which}) chosen using (id)"
        return write.typed(order, source, {i: changes.text(i) for i in range(len(order.columns))})
    values = [f"v{i}" for i in changes.partial]
    elsewhere = [i for i in changes.partial if _gather(db, changes, i, which)]
    source = (
        f"(select changes.*, hole, {', '.join(values)} from changes "
        f"join (select id, hole, {', '.join(values)} from touched where {which}) chosen using (id))"
        + "".join(f" left join earlier{i} on v{i} = earlier{i}.change" for i in elsewhere)
    )
    texts = {i: changes.text(i) for i in range(len(order.columns))}
    texts |= {i: f"case when v{i} = id then {changes.text(i)} else e{i} end" for i in elsewhere}
    if not filled:
        return write.typed(order, source, texts)
    return _completed(changes, write.typed(order, source, texts, ["id", *values]))


def _gather(db: Duck, changes: Changes, position: int, which: str) -> bool:
    """Make the table `earlier<i>`: the texts of a column that chosen rows take from an earlier change; return if any."""
    db.execute(
        f"create or replace temp table earlier{position} as "
        f"select id as change, {changes.text(position)} as e{position} from changes semi join ("
        f"select v{position} as id from touched where ({which}) and v{position} not in (id, {UNKNOWN})) wanted using (id)"
    )
    return bool(db.row(f"select count(*) from earlier{position}")[0])


def _completed(changes: Changes, rows: str) -> str:
    """Return the SQL that completes rows with unknown values from the table `filled`, misfits included."""
    columns = [
        f"case when v{i} = {UNKNOWN} then f.t{i} else c{i} end as c{i}" if i in changes.partial else f"c{i}"
        for i in range(len(changes.order.columns))
    ]
    misfits = "misfits"
    if _may_misfit(changes):
        both = f"list_concat(coalesce(map_entries(misfits), []), {_kept_misfits(changes)})"
        misfits = (
            f"case when f.tm is null then misfits when len({both}) > 0 then map_from_entries({both}) end as misfits"
        )
    return f"select {listing([*columns, misfits])}\nfrom ({rows}) y left join filled f using (id)"


def _may_misfit(changes: Changes) -> bool:
    """Return whether the lake may have misfits in the columns that a change leaves unknown."""
    return not all(changes.order.columns[i].always_fits for i in changes.partial)


def _kept_misfits(changes: Changes) -> str:
    """Return the SQL of the lake's misfits (entries of `f.tm`) of the columns that a change left unknown."""
    unknown = ", ".join(
        f"case when v{i} = {UNKNOWN} then {literal(changes.order.columns[i].name)} end" for i in changes.partial
    )
    return f"list_filter(map_entries(f.tm), lambda e: list_contains([{unknown}], e.key))"


def _count_kept_misfits(db: Duck, changes: Changes) -> int:
    """Return how many misfits the written rows have from the lake: they are no news."""
    if not _may_misfit(changes):
        return 0
    (kept,) = db.row(
        f"select coalesce(sum(len({_kept_misfits(changes)})), 0)::bigint from touched join filled f using (id) "
        "where hole and f.tm is not null"
    )
    return int(kept)

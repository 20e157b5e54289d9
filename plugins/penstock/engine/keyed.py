"""A batch onto a table with a key: the rows under touched keys go, and one row per live key comes.

The match reads only the key of the table's files, so the cost follows the change; the row that an update leaves partly
unknown is completed from the lake while it is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.engine import target, vectors, write
from penstock.engine.changes import ARRIVE, DELETE, DEPART, INSERT, UPDATE, Changes
from penstock.engine.duck import Duck, listing, literal
from penstock.engine.order import MergeAnswer, NewVector
from penstock.engine.resolve import KINDS, UNKNOWN, key_names, resolve, root_names
from penstock.engine.target import Places
from penstock.engine.write import Written
from penstock.errors import LakeError


@dataclass(frozen=True)
class Facts:
    """Hold what one look at `touched` yields: how many keys by their first event, and so on."""

    first: Mapping[int, int]
    live: int
    holes: int
    keyless: int

    @property
    def keys(self) -> int:
        """Return the number of keys."""
        return sum(self.first.values())


def apply(db: Duck, changes: Changes) -> MergeAnswer:
    """Carry the batch out; raises LakeError of a kind that pauses the table."""
    order = changes.order
    resolve(db, changes)
    facts = _facts(db, changes)
    if facts.keyless:
        raise LakeError(
            "schema-change",
            f"expected every change to carry the key, got {facts.keyless} keys with a NULL; "
            "the replica identity has changed: copy the table again",
        )
    going: Places = {}
    gone: Places = {}
    met = dict.fromkeys(KINDS, 0)
    if facts.keys and order.target and not changes.truncated:
        target.match(db, changes)
        gone = target.leave_out_gone(db, order)
        met |= dict(db.rows("select first, count(*) from matched group by first"))
        going = target.places(db, "select file, position from matched")
    conflicts = _conflicts(facts, met)
    write.require_no_conflict(order, conflicts)
    if facts.holes:
        _fill_holes(db, changes, facts, matched=bool(going))
    new = write.write(db, order, _rows(db, changes, facts)) if facts.live else Written()
    misfits = new.misfits
    if misfits and facts.holes:
        misfits -= _count_kept_misfits(db, changes)
    write.require_misfits_allowed(order, misfits)
    _require_all_written(facts, new.rows)
    removed: tuple[NewVector, ...] = ()
    if going:
        removed = vectors.write_vectors(db.files.lake, order.new_location("-deletes.puffin"), order.target, going, gone)
    deleted = sum(met.values())
    return MergeAnswer(
        files=new.files,
        vectors=removed,
        truncated=changes.truncated,
        counts={**conflicts, "rows_deleted": deleted, "rows_written": new.rows, "misfits": misfits},
        ops=changes.ops,
    )


def _facts(db: Duck, changes: Changes) -> Facts:
    any_null = " or ".join(f"{name} is null" for name in key_names(changes))
    hole = "hole" if changes.partial else "false"
    by_kind = [f"count(*) filter (where first = {kind})" for kind in KINDS]
    found = db.row(
        f"select {listing(by_kind)}, count(*) filter (where live), count(*) filter (where {hole}), "
        f"count(*) filter (where {any_null}) from touched",
    )
    first = dict(zip(KINDS, found, strict=False))
    live, holes, keyless = found[len(KINDS) :]
    return Facts(first, live, holes, keyless)


def _conflicts(facts: Facts, met: Mapping[int, int]) -> dict[str, int]:
    """Count, by the first event of each key, the keys that should have had a row and had none, and the reverse."""
    missing = {kind: facts.first[kind] - met[kind] for kind in KINDS}
    return {
        "update_missing": missing[UPDATE] + missing[DEPART],
        "delete_missing": missing[DELETE],
        "insert_existing": met[INSERT] + met[ARRIVE],
    }


def _fill_holes(db: Duck, changes: Changes, facts: Facts, *, matched: bool) -> None:
    """Make the table `filled`: for each live key with an unknown value the lake's row under its root key.

    Raises LakeError("divergence") where it lacks one.
    """
    placed = 0
    if matched:
        same = " and ".join(
            f"k.{key} is not distinct from h.{root}"
            for root, key in zip(root_names(changes), key_names(changes), strict=True)
        )
        db.execute(
            "create or replace temp table holes as select p.file, p.position, h.id from matched p "
            "join (select k.rowid as touched, h.id from touched k "
            f"join (select * from touched where hole) h on {same}) h using (touched)"
        )
        (placed,) = db.row("select count(*) from holes")
        values = [f"t{i}" for i in changes.partial]
        if _may_misfit(changes):
            values.append("tm")
        rows = target.read(db, changes.order, changes.partial)
        db.execute(
            f"create or replace temp table filled as select h.id, {', '.join(values)} from {rows} t "
            "join holes h on t.file_index = h.file and t.file_row_number = h.position"
        )
    if placed != facts.holes:
        raise LakeError(
            "divergence",
            f"expected the lake to have the rows of {facts.holes} updates that leave values out, got {placed}; "
            "copy the table again",
        )


def _require_all_written(facts: Facts, written: int) -> None:
    if written != facts.live:
        raise LakeError(
            "divergence", f"expected to write {facts.live} rows, wrote {written}; copy the table again, and report this"
        )


def _rows(db: Duck, changes: Changes, facts: Facts) -> str:
    """Return the SQL of the rows to append: streamed from the landed files, each chosen by the id of its change."""
    order = changes.order
    if not changes.partial:
        source = "changes semi join (select id from touched where live) chosen using (id)"
        return write.typed(order, source, {i: changes.text(i) for i in range(len(order.columns))})
    values = [f"v{i}" for i in changes.partial]
    elsewhere = [i for i in changes.partial if _gather(db, changes, i)]
    source = (
        f"(select changes.*, hole, {', '.join(values)} from changes "
        f"join (select id, hole, {', '.join(values)} from touched where live) chosen using (id))"
        + "".join(f" left join earlier{i} on v{i} = earlier{i}.change" for i in elsewhere)
    )
    texts = {i: changes.text(i) for i in range(len(order.columns))}
    texts |= {i: f"case when v{i} = id then {changes.text(i)} else e{i} end" for i in elsewhere}
    if not facts.holes:
        return write.typed(order, source, texts)
    return _completed(changes, write.typed(order, source, texts, ["id", *values]))


def _gather(db: Duck, changes: Changes, position: int) -> bool:
    """Make the table `earlier<i>`: the texts of a column that live rows take from an earlier change; return if any."""
    db.execute(
        f"create or replace temp table earlier{position} as "
        f"select id as change, {changes.text(position)} as e{position} from changes semi join ("
        f"select v{position} as id from touched where live and v{position} not in (id, {UNKNOWN})) wanted using (id)"
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

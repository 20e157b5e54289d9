"""A batch onto a table without a key: under REPLICA IDENTITY FULL a bag of rows, else one that only grows.

Within a batch the order of changes does not matter to a bag: what counts is how many copies of a row came or went. A
delete takes any of the equal rows, so exactly as many places as needed are chosen. PostgreSQL prints equal values
alike, -0 and 0 apart, so texts distinguish rows exactly.
"""

from penstock.contract.manifest import FileRef, alike
from penstock.engine import casts, target, vectors, write
from penstock.engine.changes import Changes, require_known_columns
from penstock.engine.duck import Duck, read_by_id, text
from penstock.engine.order import MergeAnswer, MergeOrder, Written
from penstock.engine.target import Places
from penstock.errors import LakeError
from penstock.lake.columns import MISFITS
from penstock.values.lake_types import STRING


def append(db: Duck, changes: Changes) -> MergeAnswer:
    """Write the batch's inserts; raises LakeError("schema-change") where there is anything else."""
    order = changes.order
    (others,) = db.row("select count(*) from changes where op <> 'I'")
    if others:
        raise LakeError(
            "schema-change",
            "expected inserts only for a table without a replica identity, got updates or deletes; "
            "the identity has changed: copy the table again",
        )
    texts = {i: f"n{i}" for i in range(len(order.columns))}
    new = write.write(db, order, write.typed(order, "changes", texts))
    write.require_misfits_allowed(order, new.misfits)
    return MergeAnswer(
        files=new.files,
        truncated=changes.truncated,
        counts={"rows_written": new.rows, "misfits": new.misfits},
        ops=changes.ops,
    )


def apply(db: Duck, changes: Changes) -> MergeAnswer:
    """Write as many copies of each row as came, and delete as many as went."""
    order = changes.order
    _net_rows(db, changes)
    came, went = db.row(
        "select coalesce(sum(net) filter (net > 0), 0)::bigint, coalesce(-sum(net) filter (net < 0), 0)::bigint from net",
    )
    places: Places = {}
    gone: Places = {}
    if went and order.target and not changes.truncated:
        places, gone = _places(db, order)
    deleted = sum(map(len, places.values()))
    conflicts = {"delete_missing": went - deleted}
    write.require_no_conflict(order, conflicts)
    new = Written()
    if came:
        copies = f"select {_row(order)} from (select *, unnest(range(net)) as copy from net where net > 0)"
        new = write.write(db, order, copies)
        write.require_misfits_allowed(order, new.misfits)
    return MergeAnswer(
        files=new.files,
        vectors=vectors.write_vectors(db.files.lake, order.layout.folder, order.target, places, gone),
        truncated=changes.truncated,
        counts={**conflicts, "rows_deleted": deleted, "rows_written": new.rows, "misfits": new.misfits},
        ops=changes.ops,
    )


def load(db: Duck, order: MergeOrder) -> MergeAnswer:
    """Write the rows of a copy's files, whose columns are values of the lake's types, or texts."""
    parts = [_copied(db, order, members) for members in alike(file for file in order.landed if file.rows)]
    if not parts:
        return MergeAnswer(counts={"rows_written": 0, "misfits": 0})
    rows = "\nunion all\n".join(f"select {_row(order)} from ({part})" for part in parts)
    new = write.write(db, order, rows)
    write.require_misfits_allowed(order, new.misfits)
    expected = sum(file.rows for file in order.landed)
    if new.rows != expected:
        raise LakeError(
            "landing-file-missing",
            f"expected the {expected} rows of a copy, got {new.rows}; restore its files",
        )
    return MergeAnswer(files=new.files, counts={"rows_written": new.rows, "misfits": new.misfits})


def _row(order: MergeOrder) -> str:
    return ", ".join([*(f"c{i}" for i in range(len(order.columns))), "misfits"])


def _copied(db: Duck, order: MergeOrder, members: list[tuple[int, FileRef]]) -> str:
    """Return the SQL of the rows of files of one shape; their columns carry their number in the file as field id."""
    _, first = members[0]
    present, typed = first.names, dict(first.typed)
    values = {name for column, name in zip(first.columns, present, strict=True) if column in typed}
    require_known_columns(order, present)
    texts, ready = dict[int, str](), list[str]()
    fields = list[tuple[int, str, str, str | None]]()
    for i, column in enumerate(order.columns):
        if column.name not in present:
            texts[i] = text(column.missing_text)
            continue
        name, type_ = (f"c{i}", column.lake_type) if column.name in values else (f"s{i}", STRING)
        number = present.index(column.name) + 1
        fields.append((number, name, type_, None))
        if column.name in values:
            ready.append(name)
        else:
            texts[i] = name
    return write.typed(order, read_by_id(db.landed(file.uri for _, file in members), fields), texts, ready)


def _net_rows(db: Duck, changes: Changes) -> None:
    """Make the table `net`: each distinct row that the batch changes, typed, with copies that came less those that went."""
    order = changes.order
    every = range(len(order.columns))
    came = ", ".join([*(f"{changes.text(i)} as y{i}" for i in every), "1 as n"])
    went = ", ".join([*(f"o{i} as y{i}" for i in every), "-1 as n"])
    counted = (
        "(select * exclude n, sum(n)::bigint as net from (\n"
        f"select {came} from changes where op in ('I', 'U')\nunion all\n"
        f"select {went} from changes where op in ('U', 'D')\n) group by all having sum(n) <> 0)"
    )
    rows = write.typed(order, counted, {i: f"y{i}" for i in every}, ["net"])
    db.execute(f"create or replace temp table net as {rows}")


def _places(db: Duck, order: MergeOrder) -> tuple[Places, Places]:
    """Return the rows to delete, of each row as many as went or as the lake has, and those that were gone before."""
    every = range(len(order.columns))
    types = [column.lake_type for column in order.columns]
    ours = [f"{casts.distinguishable(f'c{i}', types[i])} as e{i}" for i in every]
    ours.append(f"{casts.distinguishable('misfits', MISFITS.type)} as em")
    theirs = [f"{casts.distinguishable(f't{i}', types[i])} as e{i}" for i in every]
    theirs.append(f"{casts.distinguishable('tm', MISFITS.type)} as em")
    same = [f"t.{name} is not distinct from s.{name}" for name in [*(f"e{i}" for i in every), "em"]]
    source = f"select rowid as row, -net as wanted, {', '.join(ours)} from net where net < 0"
    target.find(db, order, every, theirs, source, same, "s.row, s.wanted")
    gone = target.leave_out_gone(db, order)
    nth = "row_number() over (partition by row order by file, position)"
    return target.places(db, f"select file, position from matched qualify {nth} <= wanted"), gone

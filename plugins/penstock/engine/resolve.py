"""From the changes of one batch to one row per key, the table `touched`, all of it on PostgreSQL's own texts.

An update that moves a row to another key is two events: the row departs from the old key and arrives at the new
one. The events of one key, in order, fall into segments, the lives of rows under that key: one begins with an
insert or an arrival (or was in the lake before), and ends with a delete or a departure (or with the batch).

Unchanged TOAST is unknown, not NULL. A column's value is the last known one of its segment; where a segment that
began with an arrival knows none, the segment that the row departed from does. Departure and arrival are the
same change, so its place links the two, and following the links leads to an insert, which knows everything,
or to the row that the lake has under the row's original key: its root.

What is kept of a change is its id: texts stay in the landed files until they are written.
"""

from penstock.engine.casts import cast_to, distinguishable
from penstock.engine.changes import ARRIVE, DELETE, DEPART, INSERT, UPDATE, Changes
from penstock.engine.duck import Duck, listing
from penstock.engine.order import Column

UNKNOWN = -1
"""In place of the id of the change that a column's value is taken from: only the lake knows it."""
_KIND_BITS = 3
_DEATHS = f"({DEPART}, {DELETE})"
_BIRTHS = f"({INSERT}, {ARRIVE})"


def key_names(changes: Changes) -> list[str]:
    """Name the columns of the key: of the lake's type where every text fits it (fast to compare; floats as its texts, for 0 is not -0), else the text."""
    return [f"k{number}" for number in range(len(changes.order.keys))]


def root_names(changes: Changes) -> list[str]:
    """Name the columns of the key under which the lake had the row when the batch began."""
    return [f"r{number}" for number in range(len(changes.order.keys))]


def resolve(db: Duck, changes: Changes) -> None:
    """Make the table `touched`: the last state of each key that the changes touch.

    Columns: the key; `live`, whether a row is there at the end; `first`, the kind of the key's first event; `off`, by how many rows
    the key's events contradict one another; `id`, the change that gives the row; `hole`, whether the lake
    must supply a value; and where columns are partial, `v<i>`, the change that gives that column's value, and the root key, where
    there is one.
    """
    keys = ", ".join(key_names(changes))
    known = [f"id as {value}" for value in _values(changes)]
    known += [f"null as {root}" for root in root_names(changes) if changes.partial]
    whole = f"select {', '.join([keys, 'live', 'first', 'off', 'id', *known])}, false as hole from every_key"
    if not changes.holes:
        events = _of_cell(db, changes, _events(changes))
        db.execute(f"create or replace temp view every_key as {_last_events(changes, events)}")
        db.execute(f"create or replace temp table touched as {whole}")
        return
    events = _of_cell(db, changes, _partial_events(changes))
    incomplete = f"bool_or({_left_out(changes)}) as incomplete"
    db.execute(f"create or replace temp table every_key as {_last_events(changes, events, incomplete)}")
    _segments(
        db,
        changes,
        f"select * from ({events}) semi join (select {keys} from every_key where incomplete) using ({keys})",
    )
    _follow_links(db, changes)
    db.execute(
        "create or replace temp table touched as "
        f"select {_kept(changes)}, live and ({_any_hole(changes)}) as hole from resolved "
        f"union all by name {whole} where not incomplete"
    )


def state_table(changes: Changes) -> str:
    """Name the table that has `first`, `live` and `off` of every key: of those with unknown values `touched` has not."""
    return "every_key" if changes.holes else "touched"


def _events(changes: Changes, extra: str = "") -> str:
    """Return the SQL that turns changes into events of one key each, with `extra` columns of the change."""
    order = changes.order
    before = [f"o{position}" for position in order.keys]
    after = [changes.text(position) for position in order.keys]
    same = " and ".join(f"({b}) is not distinct from ({a})" for b, a in zip(before, after, strict=True))
    moved = f"(op = 'U' and old_kind is not null and not ({same}))"
    kind = f"case op when 'I' then {INSERT} when 'D' then {DELETE} else {UPDATE} end"
    if order.moves:
        kind = f"case when {moved} then {ARRIVE} else {kind} end"
    texts = [f"case when op = 'D' then {b} else {a} end" for b, a in zip(before, after, strict=True)]
    arrivals = f"select {_typed_key(changes, texts)}, place + 1 as place, {kind} as kind, id{extra} from changes"
    if not order.moves:
        return arrivals
    departures = f"select {_typed_key(changes, before)}, place, {DEPART}, id{extra} from changes where {moved}"
    return f"{arrivals}\nunion all\n{departures}"


def _of_cell(db: Duck, changes: Changes, events: str) -> str:
    """Return the SQL of the events of those keys that are this task's: all, or a hash part of them.

    Keys between which rows move that leave something out must come into one part; where there are many, into that of
    the least hash among them.
    """
    cell = changes.order.cell
    if cell.parts == 1:
        return events
    keys = ", ".join(key_names(changes))
    own, joined = f"hash({keys})", ""
    if changes.holes and changes.order.moves:
        _join_moved(db, changes)
        own, joined = f"coalesce(least, {own})", f"left join moved on moved.key = {own}"
    return f"select e.* from ({events}) e {joined} where ({own} >> 32) % {cell.parts} = {cell.part}"


def _join_moved(db: Duck, changes: Changes) -> None:
    """Make the table `moved`: of the hashes of keys that such moves connect, each with the least of all connected ones."""
    departed, arrived = (
        f"select place // 2 as change, hash({', '.join(key_names(changes))}) as key from ({_partial_events(changes)}) "
        f"where kind = {kind} and ({_left_out(changes)})"
        for kind in (DEPART, ARRIVE)
    )
    db.execute(
        "create or replace temp table edges as "
        f"select d.key as departed, a.key as arrived from ({departed}) d join ({arrived}) a using (change)"
    )
    db.execute(
        "create or replace temp table moved as select key, min(other) as least from ("
        "select departed as key, least(departed, arrived) as other from edges "
        "union all select arrived, least(departed, arrived) from edges) group by key"
    )
    while True:
        # a key takes the least of its neighbours, and what that one has: chains shrink to their half
        db.execute(
            "create or replace temp table nearer as select key, min(least) as least from ("
            "select m.key, n.least from moved m join moved n on n.key = m.least "
            "union all select e.departed, m.least from edges e join moved m on m.key = e.arrived "
            "union all select e.arrived, m.least from edges e join moved m on m.key = e.departed) group by key"
        )
        (changed,) = db.row("select count(*) from moved m join nearer n using (key) where n.least <> m.least")
        db.execute("create or replace temp table moved as from nearer")
        if not changed:
            return


def _typed_key(changes: Changes, texts: list[str]) -> str:
    columns = (changes.order.columns[position] for position in changes.order.keys)

    def exact(text: str, column: Column) -> str:
        return distinguishable(cast_to(f"({text})", column.lake_type), column.lake_type) if column.always_fits else text

    return ", ".join(
        f"{exact(text, column)} as {name}"
        for text, column, name in zip(texts, columns, key_names(changes), strict=True)
    )


def _last_events(changes: Changes, events: str, *others: str) -> str:
    """Take each key's last event, which knows every column; kind and id are packed, for one number is compared fast.

    `others` are aggregates over the key's events.
    """
    keys = ", ".join(key_names(changes))
    kinds = (1 << _KIND_BITS) - 1
    found = [
        f"arg_max((id << {_KIND_BITS}) + kind, place) as last",
        "arg_min(kind, place) as first",
        f"count(*) filter (kind in {_BIRTHS}) - count(*) filter (kind in {_DEATHS}) as net",
        *others,
    ]
    return (
        f"select * exclude (last, net), (last & {kinds}) not in {_DEATHS} as live, last >> {_KIND_BITS} as id, "
        f"(first not in {_BIRTHS})::bigint + net - live::bigint as off from (\n"
        f"select {keys}, {', '.join(found)}\n"
        f"from ({events}) group by {keys})"
    )


def _partial_events(changes: Changes) -> str:
    """Return the SQL of events that say of each partial column, as u<i>, whether its value is unknown.

    A departure says so of its arrival: a row under its key may be what supplies the value.
    """
    unknown = "".join(
        f", {changes.left_out(position)} and old_kind is distinct from 'O' as u{position}"
        for position in changes.partial
    )
    return _events(changes, unknown)


def _left_out(changes: Changes) -> str:
    return " or ".join(f"u{position}" for position in changes.partial)


def _kept(changes: Changes) -> str:
    return ", ".join([*key_names(changes), "live", "first", "id", *_values(changes), *root_names(changes)])


def _values(changes: Changes) -> list[str]:
    return [f"v{position}" for position in changes.partial]


def _any_hole(changes: Changes) -> str:
    return " or ".join(f"{name} = {UNKNOWN}" for name in _values(changes))


def _segments(db: Duck, changes: Changes, events: str) -> None:
    """Make the table `segments`: each segment's last event, with what is known by then and the event that it began with."""
    keys, partial = ", ".join(key_names(changes)), changes.partial
    values = [
        f"last_value(case when kind not in {_DEATHS} and not u{position} then id when starts then {UNKNOWN} end "
        f"ignore nulls) over so_far as v{position}"
        for position in partial
    ]
    origin = "{'kind': kind, 'place': place, 'first': before is null}"
    in_lake = f"origin.first and origin.kind not in {_BIRTHS}"
    roots = [
        f"case when {in_lake} then {key} end as {root}"
        for key, root in zip(key_names(changes), root_names(changes), strict=True)
    ]
    db.execute(
        f"""create or replace temp table segments as
        with events as ({events}),
        neighbours as (
          select *, lag(kind) over in_order as before, lead(kind) over in_order as after
          from events window in_order as (partition by {keys} order by place)),
        bounds as (
          select *,
            before is null or kind in {_BIRTHS} or before in {_DEATHS} as starts,
            after is null or after in {_BIRTHS} or kind in {_DEATHS} as ends
          from neighbours),
        known as (
          select {keys}, place, kind, id, ends, after is null as last, first_value(kind) over so_far as first,
            last_value(case when starts then {origin} end ignore nulls) over so_far as origin,
            {listing(values)}
          from bounds window so_far as (
            partition by {keys} order by place rows between unbounded preceding and current row))
        select {keys}, place, kind, id, last, kind not in {_DEATHS} as live, first, origin,
          {listing([*_values(changes), *roots])}
        from known where ends"""
    )


def _follow_links(db: Duck, changes: Changes) -> None:
    """Make the table `resolved`: each key's last segment, where what a row that arrived does not know comes from its earlier keys.

    Each round lets every link see twice as far back, so a row that moved n times takes log2(n) rounds.
    """
    values, roots = _values(changes), root_names(changes)
    keys, own = key_names(changes), ["live", "first", "id"]
    if not changes.order.moves:
        db.execute("create or replace temp view resolved as select * from segments where last")
        return
    further = f"case when ({_any_hole(changes)}) and origin.kind = {ARRIVE} then origin.place - 1 end"
    db.execute(
        f"create or replace temp table links as "
        f"select place, {further} as further, {', '.join([*values, *roots])} from segments where kind = {DEPART}"
    )
    inherited = ", ".join(
        [
            *(f"case when c.{v} <> {UNKNOWN} then c.{v} else coalesce(p.{v}, c.{v}) end as {v}" for v in values),
            *(f"coalesce(p.{root}, c.{root}) as {root}" for root in roots),
        ]
    )
    while db.row("select count(*) from links where further is not null")[0]:
        db.execute(
            f"create or replace temp table links as select c.place, p.further, {inherited} "
            "from links c left join links p on c.further = p.place"
        )
    arrived = f"(live and origin.kind = {ARRIVE} and ({_any_hole(changes)}))"
    db.execute(
        f"""create or replace temp view resolved as
        select {", ".join([*keys, *own, *values, *roots])} from segments where last and not {arrived}
        union all
        select {", ".join(f"c.{name}" for name in [*keys, *own])}, {inherited}
        from (select * from segments where last and {arrived}) c left join links p on c.origin.place - 1 = p.place"""
    )

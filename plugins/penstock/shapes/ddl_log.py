"""Whether the commands that the source's event trigger logged have kept every value of a table that they rewrote. Pure.

A new file and an altered column may mean other values, and the catalog cannot tell. It is known where each command that altered
the column was plain, and the server's own cast from its type of before to that of after changes no value.

A TRUNCATE of a partition alone is in no message and gives it a new file, as a rewrite does. So the file that the rewrite found
has to be the known one, and the file that it left the present one. Within the transaction of the rewrite, though, a later TRUNCATE
keeps the file: that nothing was lost to one, the rows have to show, or that there were none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from penstock.shapes.known_shape import KnownShape
from penstock.shapes.timeline import History
from penstock.values.type_change import cast_keeps

_XID = 0xFFFFFFFF  # a column's version is the 32-bit id of the transaction, or a part of it, that wrote its catalog row


@dataclass(frozen=True, slots=True)
class Before:
    """Hold what was right at an earlier look: the number of the table's file, and its columns' types (oid and typmod) and versions.

    `bases` are the types of which domains are made, by oid. `checked`: what windows brought since then has been read.
    """

    file: int
    types: Mapping[int, tuple[int, int]]
    versions: Mapping[int, str]
    bases: Mapping[int, int] = field(default_factory=dict)
    checked: bool = False


Values = Literal["kept", "unsure", "open"]
"""What was logged of columns: each value was kept, or may be another; or more is still to be logged up to the last look."""


def read_rewrites(history: History, before: Before, now: Mapping[int, str]) -> Values:
    """Hold what a window logged against what was right before, for the columns that were altered; `now` are their versions by attnum."""
    events, newest = history.logged, history.found[-1]
    found = _since(history.found, before, now)
    generation = newest.generation
    everything = {each.generation for each in (*found, *events)} == {generation}
    silent = any(state.unlogged for state in events)
    sure = found and generation and everything and history.complete
    if not sure or newest.gaps or silent or history.contradicts:
        return "unsure"
    earlier = history.before if history.before is not None and history.before.generation == generation else None
    for attnum, version in now.items():
        if not (_follow_one_another(attnum, earlier, events, version) and _kept(attnum, earlier, events, before)):
            return "unsure"
    last = events[-1] if events else earlier
    complete = last is not None and all(str(last.versions.get(attnum)) == version for attnum, version in now.items())
    return "kept" if complete else "open"


def _since(found: Sequence[KnownShape], before: Before, attnums: Mapping[int, str]) -> Sequence[KnownShape]:
    """Return the catalog's shapes from the one in which the columns were right; without it all, if windows since then have been read."""
    right = [
        place
        for place, each in enumerate(found)
        if all(each.columns.get(attnum, ())[1:] == before.types[attnum] for attnum in attnums)
    ]
    if right:
        return found[right[-1] :]
    return found if before.checked else ()


def _follow_one_another(attnum: int, earlier: KnownShape | None, events: Sequence[KnownShape], now: str) -> bool:
    """Return whether each version of a column comes once, up to that which the look found: one that comes again contradicts the others."""
    states = events if earlier is None else [earlier, *events]
    versions = [*(str(state.versions.get(attnum)) for state in states), now]
    return len(list(groupby(versions))) == len(set(versions))


def _kept(attnum: int, earlier: KnownShape | None, events: Sequence[KnownShape], before: Before) -> bool:
    """Return whether no command that was logged can have changed a column's values since they were right."""
    right = before.versions[attnum]
    versions = [str(state.versions.get(attnum)) for state in events]
    type_, version, steps = before.types[attnum], right, events
    if right in versions:  # up to there the earlier look has seen it
        place = len(versions) - 1 - versions[::-1].index(right)
        type_, steps = events[place].columns[attnum][1:], events[place + 1 :]
    elif earlier is not None:
        if attnum not in earlier.columns or not (before.checked or str(earlier.versions[attnum]) == right):
            return False
        type_, version = earlier.columns[attnum][1:], str(earlier.versions[attnum])
    xid, begun = None, version
    for state in steps:
        if attnum not in state.columns:
            return False
        found = str(state.versions[attnum])
        if state.xid != xid:
            begun, xid = version, state.xid
        altered = found != begun or found == str(state.xid & _XID)
        new = state.columns[attnum][1:]
        kept = state.plain and cast_keeps(*((before.bases.get(oid, oid), typmod) for oid, typmod in (type_, new)))
        if altered and state.file != before.file and not kept:
            return False
        type_, version = new, found
    return True


def rewrite_logged(before: int, now: int, generation: str | None, events: Sequence[KnownShape]) -> KnownShape | None:
    """Return the one plain rewrite by which a partition came from the file `before` to that of `now`, None where none is logged.

    More than one such story is somebody's invention.
    """
    stories = [(each.rewrote, each) for each in events if each.rewrote and each.rewrote.file == before]
    if len(stories) != 1 or not generation:
        return None
    ((start, end),) = stories
    one = start.xid == end.xid and {start.generation, end.generation} == {generation} and end.plain
    return end if one and end.file == now else None

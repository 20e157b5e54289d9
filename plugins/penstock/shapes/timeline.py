"""Which of the catalog's columns a relation of the stream has: names and types are in the message, numbers are not. Pure.

The message lists columns in the order of their attnums, and looks at the catalog before and after it say which were there.
Columns that every look has are in the message, whatever they were called in between: so names prove nothing, types and
order do. Where they leave more than one reading, there is no answer.

Where the source's event trigger logs what each command of DDL left, a state holds from its message to the table's next one. That nothing happened between the two without a message is believed only
where the trigger was there all the time, and where neither the RELATION message nor a look at the catalog contradicts; else
the looks decide as they do without a trigger, between narrower bounds where the states give such.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from penstock.contract.table_state import TableState
from penstock.ledger.relation_records import ColumnLook, ColumnState, RelationNumbers
from penstock.shapes.source_table import SourceTable
from penstock.wire.columnar import DdlEvent
from penstock.wire.messages import Relation

DROPPED = 0
"""The attnum of a column that is one of several that were dropped since; no column of the catalog has it."""
_HALF = 1 << 31  # transaction ids are compared as the server compares them


@dataclass(frozen=True, slots=True)
class History:
    """Hold all that is known of a table around a window: the looks, the last state logged before it, and those within it.

    `ddl_gaps` counts the trigger's messages within the window that said nothing. `complete`: no message is kept from the stream.
    """

    looks: Sequence[ColumnLook]
    before: TableState | None = None
    ddl_events: Sequence[DdlEvent] = ()
    ddl_gaps: int = 0
    complete: bool = True


@dataclass(frozen=True, slots=True)
class _Known:
    """Hold the table's columns at one place; `xid` is 0 where a look found them."""

    look: ColumnLook
    ddl_gaps: int = 0
    dropped: Mapping[int, int] = field(default_factory=dict)
    xid: int = 0
    versions: Mapping[int, int] = field(default_factory=dict)


def columns_at(relation: Relation, after: Collection[int], history: History) -> tuple[int, ...] | None:
    """Return the attnums of a relation that was announced `after` so many DDL events; None where that is not sure."""
    looks = history.looks
    chain = _chain(history)
    if not (history.ddl_events or history.before) or not _agree(chain):
        return attnums(relation, looks)
    found = {_at(relation, chain[place], chain[place + 1], history) for place in after}
    return next(iter(found)) if len(found) == 1 else None


def _chain(history: History) -> list[_Known | None]:
    """Return what is known in the order of the stream, with the state before the window first and the newest look last."""
    last = _Known(history.looks[-1], history.ddl_gaps)
    events = [_at_event(each.state, each.ddl_gaps) for each in history.ddl_events]
    first = history.looks[0] if history.looks[0].sure else None
    follower = (*events, last)[0]
    before = _at_event(history.before, 0) if history.before else None
    if first and (before is None or before.look.trigger != follower.look.trigger):
        before = _Known(first)
    return [before, *events, last]


def contradicts(history: History) -> bool:
    """Return whether states and looks cannot follow one another."""
    return not _agree(_chain(history))


def _at_event(state: TableState, ddl_gaps: int) -> _Known:
    look = ColumnLook(state.count, state.columns, state.trigger)
    return _Known(look, ddl_gaps, state.dropped, state.xid, state.versions)


def _agree(chain: Sequence[_Known | None]) -> bool:
    """Return whether these can follow one another: numbers and versions are given out once, and a dropped column stays dropped."""
    known = [each for each in chain if each is not None]
    return _once(known) and all(
        one.look.count <= other.look.count
        and not one.dropped.keys() & other.look.columns.keys()
        and (not other.xid or all(other.dropped.get(attnum) == xid for attnum, xid in one.dropped.items()))
        for one, other in pairwise(known)
    )


def _once(known: Sequence[_Known]) -> bool:
    """Return whether no column has a version again that it had before another one."""
    newest: dict[int, int] = {}
    past: set[tuple[int, int]] = set()
    for each in known:
        for attnum, version in each.versions.items():
            if newest.get(attnum, version) != version:
                past.add((attnum, newest[attnum]))
            newest[attnum] = version
        if not past.isdisjoint(each.versions.items()):
            return False
    return True


def _at(relation: Relation, here: _Known | None, following: _Known | None, history: History) -> tuple[int, ...] | None:
    if here is not None and following is not None and _nothing_between(here, following, history):
        found = _named(relation, here.look, history.looks)
        if found is not None:
            return found
    bounds = [
        history.looks[0] if here is None else here.look,
        history.looks[-1] if following is None else following.look,
    ]
    narrow = [_sent(look, history.looks[0]) for look in bounds]
    return attnums(relation, narrow) or attnums(relation, history.looks)


def _nothing_between(here: _Known, following: _Known, history: History) -> bool:
    """Return whether no command changed the table between two places: the trigger was there, and logged none."""
    if not here.look.trigger or here.look.trigger != following.look.trigger or here.ddl_gaps != following.ddl_gaps:
        return False
    if not following.xid:
        return history.complete
    # what the command that was logged has not dropped itself went before it, unnoticed
    dropped = (xid for attnum, xid in following.dropped.items() if attnum not in here.dropped)
    new = (xid for attnum, xid in following.dropped.items() if attnum in here.look.columns or attnum > here.look.count)
    return all((xid - following.xid) % (2 * _HALF) < _HALF for xid in (new if not here.xid else dropped))


def _named(relation: Relation, here: ColumnLook, looks: Sequence[ColumnLook]) -> tuple[int, ...] | None:
    """Return the attnums of the names that a relation has in a state; None where state, relation and looks contradict."""
    sent = [(column.name, column.type_oid, column.typmod) for column in relation.columns]
    numbers = TableState(relation.oid, here.trigger, here.count, here.columns).attnums(sent)
    if numbers is None:
        return None
    published = looks[0].columns.keys() | looks[-1].columns.keys()
    through = set.intersection(*(set(look.columns) for look in looks))
    missing = here.columns.keys() - set(numbers)
    return numbers if through <= set(numbers) and not missing & published else None


def _sent(look: ColumnLook, first: ColumnLook) -> ColumnLook:
    """Return a look without the columns that were there at the first one and not in the stream."""
    there = {n: state for n, state in look.columns.items() if n in first.columns or n > first.count}
    return replace(look, columns=there)


def column_look(table: SourceTable) -> ColumnLook:
    """Return what a look at the catalog has found of a table's published columns."""
    states = {column.attnum: (column.name, column.type.oid, column.type.typmod) for column in table.columns}
    key = tuple(column.attnum for column in table.columns if column.key)
    return ColumnLook(table.attnums, states, key=key, key_index=table.key_index, hidden=table.hidden_attnums)


def numbers(relation: Relation, found: tuple[int, ...] | None, looks: Sequence[ColumnLook]) -> RelationNumbers:
    """Return what a relation's columns are, whose attnums were `found`; it had them between the first and the last of the looks.

    Its message marks the columns that come with each old row. Under REPLICA IDENTITY FULL these are all, and a row is known by
    the primary key where that was the same throughout, index and all; else only whole rows tell which are meant.
    """
    if found is None:
        return RelationNumbers(None)
    if relation.replica_identity != "f":
        return RelationNumbers(found, _sure_key(marked(relation, found), looks))
    keys = {(look.key, look.key_index) for look in looks}
    return RelationNumbers(found, looks[0].key if len(keys) == 1 else ())


def _sure_key(marked: tuple[int, ...], looks: Sequence[ColumnLook]) -> tuple[int, ...]:
    """Return the key that a message marks: all of it, unless a column may belong to it that is not published."""
    sure = not any(look.hidden for look in looks) and not _come_and_gone(looks)
    if sure or any(set(marked) == set(look.key) for look in looks):
        return marked
    return (DROPPED,) if any(look.key for look in looks) else ()


def marked(relation: Relation, numbers: Sequence[int]) -> tuple[int, ...]:
    """Return the columns that a message marks as those that come with each old row."""
    return tuple(attnum for sent, attnum in zip(relation.columns, numbers, strict=True) if sent.key)


def attnums(relation: Relation, looks: Sequence[ColumnLook]) -> tuple[int, ...] | None:
    """Return the attnums of a relation's columns, which it had at some time between the first and the last of the looks.

    None where more than one reading is possible, or none; `DROPPED` for one of several that are no longer there.
    """
    sent = _sent_states(relation)
    through = set.intersection(*(set(look.columns) for look in looks))
    if len(sent) == len(through):
        return tuple(sorted(through))
    if _come_and_gone(looks):
        return None
    states = _known_states(looks)
    if len(sent) == len(states):  # all that any look has: whatever types they had in between
        return tuple(sorted(states))
    came = sorted(looks[-1].columns.keys() - through)
    gone = states.keys() - looks[-1].columns.keys()
    # what is there at last came in its order, whatever it was called: the first so many are there, the others not yet
    possible = [
        count for count in range(len(came) + 1) if _readable(sent, states, through | set(came[:count]), gone)[0][0]
    ]
    if len(possible) != 1:
        return None
    return _reading(sent, states, through | set(came[: possible[0]]), gone)


def _sent_states(relation: Relation) -> list[ColumnState]:
    """Return the columns of a relation in the form in which looks have them."""
    return [(column.name, column.type_oid, column.typmod) for column in relation.columns]


def _known_states(looks: Sequence[ColumnLook]) -> dict[int, set[ColumnState]]:
    """Return what looks have found of each column."""
    states: dict[int, set[ColumnState]] = {}
    for look in looks:
        for attnum, state in look.columns.items():
            states.setdefault(attnum, set()).add(state)
    return states


def _come_and_gone(looks: Sequence[ColumnLook]) -> bool:
    """Return whether columns were added and dropped between two looks, which saw neither."""
    added = ((len([n for n in after.columns if n > before.count]), before, after) for before, after in pairwise(looks))
    return any(after.count - before.count > seen for seen, before, after in added)


def _reading(
    sent: Sequence[ColumnState],
    states: Mapping[int, Collection[ColumnState]],
    needed: Collection[int],
    gone: Collection[int],
) -> tuple[int, ...] | None:
    """Return what each column must be, of all that are `needed` and some that are `gone`; None where it may be one of either."""
    known, rest = sorted({*needed, *gone}), _readable(sent, states, needed, gone)
    reached, found = {0}, [set[int]() for _ in sent]
    for place, attnum in enumerate(known):
        taken = {at for at in reached if at < len(sent) and rest[place + 1][at + 1] and _like(sent[at], states[attnum])}
        for at in taken:
            found[at].add(attnum)
        reached = {at + 1 for at in taken} | (set() if attnum in needed else reached)
    if not all(len(numbers) == 1 or numbers <= set(gone) for numbers in found):
        return None
    return tuple(next(iter(numbers)) if len(numbers) == 1 else DROPPED for numbers in found)


def _readable(
    sent: Sequence[ColumnState],
    states: Mapping[int, Collection[ColumnState]],
    needed: Collection[int],
    gone: Collection[int],
) -> list[list[bool]]:
    """Return, per place in the order of attnums and column: whether the rest can be read by the rest."""
    rest = [[False] * len(sent) + [True]]
    for attnum in sorted({*needed, *gone}, reverse=True):
        after, known = rest[0], states[attnum]
        taken = [after[at + 1] and _like(state, known) for at, state in enumerate(sent)]
        skipped = [False] * len(after) if attnum in needed else after
        rest.insert(0, [one or other for one, other in zip([*taken, False], skipped, strict=True)])
    return rest


def _like(sent: ColumnState, known: Collection[ColumnState]) -> bool:
    """Return whether a column of the stream may be one that looks found in these states: its name may have been another."""
    return any(sent[1:] == state[1:] for state in known)

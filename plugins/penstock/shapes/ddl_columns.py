"""Which of the catalog's columns a relation has, where the source's event trigger logged what each command of DDL left. Pure.

A state holds from its message to the table's next one. That nothing happened between the two without a message is believed only
where the trigger was there all the time, and where neither the RELATION message nor a look at the catalog contradicts; else
the looks decide as they do without a trigger, between narrower bounds where the states give such.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from penstock.contract.table_state import TableState
from penstock.ledger.relation_records import ColumnLook
from penstock.shapes.relation_columns import attnums
from penstock.wire.columnar import DdlEvent
from penstock.wire.messages import Relation

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

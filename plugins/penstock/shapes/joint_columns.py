"""Which of the catalog's columns the relations of one window have, read together in the order of the stream. Pure.

A column that is gone does not come back, and one that is there stays until it goes. So a message that could be read in two ways
alone often has one reading beside its neighbours. Types and order are all that counts, as for a single message.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, pairwise

from penstock.ledger.relation_records import ColumnLook, ColumnState
from penstock.shapes.relation_columns import DROPPED, come_and_gone, known_states, like, sent_states
from penstock.wire.messages import Relation

_MOST = 500
"""Of the sets of columns that one message may have. Where there are more the window is not read together."""


@dataclass(frozen=True, slots=True)
class _Moment:
    """Hold how many of the new columns had been added, and which columns had been dropped."""

    added: int
    dropped: frozenset[int]

    def before(self, other: _Moment) -> bool:
        """Return whether a table can become the other from this."""
        return self.added <= other.added and self.dropped <= other.dropped


@dataclass(frozen=True, slots=True)
class _Table:
    """Hold the states of all columns of a table that looks have seen: `old` ones of the first look, `new` ones in their order."""

    states: Mapping[int, Collection[ColumnState]]
    old: frozenset[int]
    new: tuple[int, ...]
    stay: frozenset[int]

    def moments(self, sent: Sequence[ColumnState]) -> Iterator[tuple[_Moment, tuple[int, ...]]]:
        """Yield each moment at which the table could have sent these columns, with their attnums."""
        for added in range(len(self.new) + 1):
            there = self.old.union(self.new[:added])
            may_go = sorted(there - self.stay)
            missing = len(there) - len(sent)
            if not 0 <= missing <= len(may_go):
                continue
            for gone in combinations(may_go, missing):
                attnums = tuple(sorted(there.difference(gone)))
                if all(like(state, self.states[attnum]) for state, attnum in zip(sent, attnums, strict=True)):
                    yield _Moment(added, frozenset(gone)), attnums


def read(
    order: Sequence[tuple[Relation, int | None]],
    looks: Sequence[ColumnLook],
    earlier: Iterable[tuple[int, ...]] = (),
) -> dict[int, tuple[int, ...] | None]:
    """Return the attnums of the columns of a table's relations by version; these came in this order between the looks.

    `earlier` are the attnums of relations of windows before, in any order.
    None where more than one reading is possible, or none; `DROPPED` for one of several columns that are no longer there.
    """
    if come_and_gone(looks):
        return {}
    states, first, last = known_states(looks), looks[0].columns.keys(), looks[-1].columns.keys()
    table = _Table(states, frozenset(first), tuple(sorted(states.keys() - first)), frozenset(last))
    found = [list(islice(table.moments(sent_states(relation)), _MOST + 1)) for relation, _ in order]
    if any(len(moments) > _MOST for moments in found):
        return {}
    for attnums in earlier:
        _keep_later(found, frozenset(attnums), states.keys())
    for step in (1, -1):
        _keep_reachable(found[::step], forward=step == 1)
    readings: dict[int, list[tuple[int, ...]]] = {}
    for (_, version), moments in zip(order, found, strict=True):
        if version is not None:  # which may come more than once
            readings.setdefault(version, []).extend(attnums for _, attnums in moments)
    return {version: _common(each, states.keys() - last) for version, each in readings.items()}


def _keep_reachable(found: Sequence[list[tuple[_Moment, tuple[int, ...]]]], *, forward: bool) -> None:
    """Leave out what no moment of the message before can become, or of the one after in the other direction."""
    for earlier, later in pairwise(found):
        later[:] = [
            (moment, attnums)
            for moment, attnums in later
            if any(each.before(moment) if forward else moment.before(each) for each, _ in earlier)
        ]


def _keep_later(
    found: Sequence[list[tuple[_Moment, tuple[int, ...]]]], had: frozenset[int], known: Collection[int]
) -> None:
    """Leave out what a table that `had` these columns before cannot have: less than was added by then, or what had gone."""
    if DROPPED in had:
        return
    last = max(had, default=0)
    for moments in found:
        moments[:] = [
            (moment, there)
            for moment, there in moments
            if all(n in had or n > last for n in there)
            and all(n in there or n in moment.dropped or n not in known for n in had)
        ]


def _common(readings: Sequence[tuple[int, ...]], gone: Collection[int]) -> tuple[int, ...] | None:
    """Return what each column is in all readings."""
    columns = [set(numbers) for numbers in zip(*readings, strict=True)]
    if not readings or not all(len(numbers) == 1 or numbers <= set(gone) for numbers in columns):
        return None
    return tuple(next(iter(numbers)) if len(numbers) == 1 else DROPPED for numbers in columns)

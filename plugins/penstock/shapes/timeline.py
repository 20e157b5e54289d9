"""Which of the catalog's columns a relation of the stream has: names and types are in the message, numbers are not. Pure.

The message lists columns in the order of their attnums, and the shapes of the table that are known before and after it say which
were there. Columns that all of these have are in the message, whatever they were called in between: so names prove nothing, types
and order do. Where they leave more than one reading, there is no answer.

A shape is known from the catalog, or from the log of the source's event trigger, where it holds from its message to the table's next
one. That nothing happened between the two without a message is believed only where the trigger was there all the time, and where
neither the RELATION message nor the catalog contradicts; else the shapes of the catalog decide as they do without a trigger, between
narrower bounds where the logged ones give such.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from penstock.lsn import Lsn
from penstock.shapes.known_shape import KnownShape, sent_states
from penstock.shapes.source_table import ColumnState, TableColumn
from penstock.wire.messages import Relation

DROPPED = 0
"""The attnum of a column that is one of several that were dropped since; no column of the catalog has it."""
_HALF = 1 << 31  # transaction ids are compared as the server compares them


@dataclass(frozen=True, slots=True)
class History:
    """Hold all that is known of a table around a window: the catalog's shapes, the last one logged before it, and those within it.

    The newest of the catalog's has the `gaps` of the whole window. `complete`: no message is kept from the stream.
    """

    found: Sequence[KnownShape]
    before: KnownShape | None = None
    logged: Sequence[KnownShape] = ()
    complete: bool = True

    def within(self, logged: Sequence[KnownShape], gaps: int, complete: bool) -> History:
        """Return what is known with what a window logged of the table, of which `gaps` messages said nothing."""
        found = (*self.found[:-1], replace(self.found[-1], gaps=gaps))
        return replace(self, found=found, logged=logged, complete=complete)

    @property
    def chain(self) -> list[KnownShape | None]:
        """Return what is known in the order of the stream: what was right before the window, what it logged, and what it is now."""
        first = self.found[0] if self.found[0].sure else None
        before, follower = self.before, (*self.logged, self.found[-1])[0]
        if first and (before is None or before.generation != follower.generation):
            before = replace(first, gaps=0)
        return [before, *self.logged, self.found[-1]]

    @property
    def contradicts(self) -> bool:
        """Return whether these shapes cannot follow one another: numbers and versions are given out once, and a dropped column stays dropped."""
        known = [each for each in self.chain if each is not None]
        return not _once(known) or not all(
            one.count <= other.count
            and not one.dropped.keys() & other.columns.keys()
            and (not other.xid or all(other.dropped.get(attnum) == xid for attnum, xid in one.dropped.items()))
            for one, other in pairwise(known)
        )


@dataclass(frozen=True, slots=True)
class RelationMapping:
    """Say which of the table's columns those of a relation version are, None where that cannot be told.

    `key` are those by which its changes find their rows: none where only whole rows do, None where that is not known.
    """

    attnums: tuple[int, ...] | None
    key: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class KnownRelation:
    """Hold one shape of a relation as the stream described it, and what its columns are in the windows from `from_lsn` on.

    `mapping` is None where the catalog was not asked for the table.
    """

    version: int
    from_lsn: Lsn
    relation: Relation
    mapping: RelationMapping | None


def mapping_of(relation: Relation, after: Collection[int], history: History) -> RelationMapping:
    """Return what the columns of a relation are that was announced `after` so many logged shapes of its table.

    Its message marks the columns that come with each old row. Under REPLICA IDENTITY FULL these are all, and a row is known by
    the primary key where that was the same throughout, index and all; else only whole rows tell which are meant.
    """
    attnums, found = columns_of(relation, after, history), history.found
    if attnums is None:
        return RelationMapping(None)
    if relation.replica_identity != "f":
        return RelationMapping(attnums, _sure_key(marked(relation, attnums), found))
    keys = {(each.key, each.key_index) for each in found}
    return RelationMapping(attnums, found[0].key if len(keys) == 1 else ())


def _sure_key(marks: tuple[int, ...], found: Sequence[KnownShape]) -> tuple[int, ...]:
    """Return the key that a message marks: all of it, unless a column may belong to it that is not published."""
    sure = not any(each.hidden for each in found) and not _come_and_gone(found)
    if sure or any(set(marks) == set(each.key) for each in found):
        return marks
    return (DROPPED,) if any(each.key for each in found) else ()


def marked(relation: Relation, attnums: Sequence[int]) -> tuple[int, ...]:
    """Return the columns that a message marks as those that come with each old row."""
    return tuple(attnum for sent, attnum in zip(relation.columns, attnums, strict=True) if sent.key)


def columns_of(relation: Relation, after: Collection[int], history: History) -> tuple[int, ...] | None:
    """Return the attnums of a relation that was announced `after` so many logged shapes of its table.

    None where more than one reading is possible, or none; `DROPPED` for one of several that are no longer there.
    """
    if not (history.logged or history.before) or history.contradicts:
        return _between(relation, history.found)
    chain = history.chain
    found = {_at(relation, chain[place], chain[place + 1], history) for place in after}
    return next(iter(found)) if len(found) == 1 else None


def first_columns(relation: Relation, columns: Iterable[TableColumn]) -> tuple[int, ...] | None:
    """Return the attnums of a relation of which the catalog was not asked: its columns are these, or the first of them."""
    there = sorted(columns, key=lambda column: column.attnum)
    states = {column.attnum: (column.name, column.type.oid, column.type.typmod) for column in there}
    first = dict(list(states.items())[: len(relation.columns)])
    return _between(relation, [KnownShape(max(known, default=0), known) for known in (first, states)])


def _at(
    relation: Relation, here: KnownShape | None, following: KnownShape | None, history: History
) -> tuple[int, ...] | None:
    found = history.found
    if here is not None and following is not None and _nothing_between(here, following, history):
        named = _named(relation, here, found)
        if named is not None:
            return named
    bounds = (here or found[0], following or found[-1])
    return _between(relation, [_sent(each, found[0]) for each in bounds]) or _between(relation, found)


def _nothing_between(here: KnownShape, following: KnownShape, history: History) -> bool:
    """Return whether no command changed the table between two places: the trigger was there, and logged none."""
    if not here.generation or here.generation != following.generation or here.gaps != following.gaps:
        return False
    if not following.xid:
        return history.complete
    # what the command that was logged has not dropped itself went before it, unnoticed
    dropped = (xid for attnum, xid in following.dropped.items() if attnum not in here.dropped)
    new = (xid for attnum, xid in following.dropped.items() if attnum in here.columns or attnum > here.count)
    return all((xid - following.xid) % (2 * _HALF) < _HALF for xid in (new if not here.xid else dropped))


def _named(relation: Relation, here: KnownShape, found: Sequence[KnownShape]) -> tuple[int, ...] | None:
    """Return the attnums of the names that a relation has in a logged shape; None where it, relation and catalog contradict."""
    attnums = here.attnums(sent_states(relation))
    if attnums is None:
        return None
    published = found[0].columns.keys() | found[-1].columns.keys()
    through = set.intersection(*(set(each.columns) for each in found))
    missing = here.columns.keys() - set(attnums)
    return attnums if through <= set(attnums) and not missing & published else None


def _sent(shape: KnownShape, first: KnownShape) -> KnownShape:
    """Return a shape without the columns that were there at the first one and not in the stream."""
    there = {n: state for n, state in shape.columns.items() if n in first.columns or n > first.count}
    return replace(shape, columns=there)


def _once(known: Sequence[KnownShape]) -> bool:
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


def _between(relation: Relation, known: Sequence[KnownShape]) -> tuple[int, ...] | None:
    """Return the attnums of a relation's columns, which it had at some time between the first and the last of these shapes."""
    sent = sent_states(relation)
    through = set.intersection(*(set(each.columns) for each in known))
    if len(sent) == len(through):
        return tuple(sorted(through))
    if _come_and_gone(known):
        return None
    states: dict[int, set[ColumnState]] = {}
    for each in known:
        for attnum, state in each.columns.items():
            states.setdefault(attnum, set()).add(state)
    if len(sent) == len(states):  # all that any shape has: whatever types they had in between
        return tuple(sorted(states))
    came = sorted(known[-1].columns.keys() - through)
    gone = states.keys() - known[-1].columns.keys()
    # what is there at last came in its order, whatever it was called: the first so many are there, the others not yet
    possible = [
        count for count in range(len(came) + 1) if _readable(sent, states, through | set(came[:count]), gone)[0][0]
    ]
    if len(possible) != 1:
        return None
    return _reading(sent, states, through | set(came[: possible[0]]), gone)


def _come_and_gone(known: Sequence[KnownShape]) -> bool:
    """Return whether columns were added and dropped between two shapes, which have neither."""
    added = ((len([n for n in after.columns if n > before.count]), before, after) for before, after in pairwise(known))
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
    """Return whether a column of the stream may be one that has been in these states: its name may have been another."""
    return any(sent[1:] == state[1:] for state in known)

"""Which rows a partition can hold, as far as the lake's types compare as the server's do. Pure.

A bound is a row of conditions, one for each level of partitions that can be told: a range of whole numbers, dates or
timestamps, or a list of such values or of texts. A level of anything else, a default partition and a hash included, says
nothing, so that a bound may hold more rows than its partition does, and none of them all is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial
from typing import Any

_KINDS = {20: "int", 21: "int", 23: "int", 1082: "date", 1114: "timestamp", 1184: "instant", 25: "text", 1043: "text"}
_LITERAL = r"'(?:[^']|'')*'|[^\s,()']+"
_RANGE = re.compile(rf"FOR VALUES FROM \(({_LITERAL})\) TO \(({_LITERAL})\)")
_LIST = re.compile(rf"FOR VALUES IN \((?:{_LITERAL})(?:, (?:{_LITERAL}))*\)")


@dataclass(frozen=True, slots=True)
class Condition:
    """Say which values one column has: from `low` on and below `high` (None: no end), or one of `values`.

    `kind` is `int`, `date`, `timestamp`, `instant` (with time zone) or `text`; values are the server's texts, None for NULL.
    """

    column: str | int
    kind: str
    low: str | None = None
    high: str | None = None
    values: tuple[str | None, ...] | None = None

    @property
    def found_in_lake(self) -> bool:
        """Return whether the lake's values alone say which rows meet it: one that does not fit its type is NULL there."""
        if self.values is not None:
            return None not in self.values
        # beyond all that the lake holds lie more dates, with which a range without an end goes on
        return self.kind == "int" or (self.low is not None and self.high is not None)

    def misses(self, other: Condition) -> bool:
        """Return whether no value of the column meets both."""
        if self.values is not None:
            return not any(other.holds(value) for value in self.values)
        if other.values is not None:
            return not any(self.holds(value) for value in other.values)
        return _before(self.kind, self.high, other.low) or _before(self.kind, other.high, self.low)

    def holds(self, value: str | None) -> bool:
        """Return whether a value meets the condition."""
        if self.values is not None:
            return value in self.values
        if value is None:
            return False
        found = _value(self.kind, value)
        return (self.low is None or _value(self.kind, self.low) <= found) and (
            self.high is None or found < _value(self.kind, self.high)
        )


Bound = tuple[Condition, ...]


def parse_bound(levels: Sequence[Sequence[Any] | None]) -> Bound:
    """Read the bounds of a partition from the root on, as the statement `heaps` gives them, but for levels that say too little."""
    conditions = (None if level is None else _condition(*level) for level in levels)
    return tuple(each for each in conditions if each is not None)


def by_attnum(bound: Bound, attnums: Mapping[str, int]) -> Bound:
    """Return a bound with its columns by attnum; one that is not among them says nothing."""
    return tuple(replace(each, column=attnums[str(each.column)]) for each in bound if str(each.column) in attnums)


def data(bound: Bound) -> list[list[Any]]:
    """Return a bound as plain data."""
    return [
        [each.column, each.kind, each.low, each.high, None if each.values is None else list(each.values)]
        for each in bound
    ]


def named(bound: Bound, names: Mapping[int, str]) -> Bound:
    """Return a bound with its columns by name."""
    return tuple(replace(each, column=names[int(each.column)]) for each in bound)


def joined(bounds: Iterable[Bound]) -> list[Bound]:
    """Return fewer bounds that hold the same rows: ranges that follow on one another are one."""
    groups: dict[Bound, list[Condition]] = {}
    for bound in dict.fromkeys(map(_narrowed, bounds)):
        if bound is not None:
            groups.setdefault(bound[:-1], []).append(bound[-1])
    return [(*rest, last) for rest, lasts in groups.items() for last in _joined(lasts)]


def _narrowed(bound: Bound) -> Bound | None:
    """Return a bound that asks for each column once, None where no row meets it: PostgreSQL takes a partition outside its parent's."""
    met: dict[tuple[str | int, bool], Condition] = {}
    for each in bound:
        place = (each.column, each.values is None)
        met[place] = _both(met.pop(place), each) if place in met else each
    return None if any(map(_empty, met.values())) else tuple(met.values())


def _both(one: Condition, other: Condition) -> Condition:
    """Return what two ranges, or two lists, of one column have in common."""
    if one.values is not None:
        return replace(one, values=tuple(value for value in one.values if other.holds(value)))
    value = partial(_value, one.kind)
    lows = [each.low for each in (one, other) if each.low is not None]
    highs = [each.high for each in (one, other) if each.high is not None]
    return replace(one, low=max(lows, key=value, default=None), high=min(highs, key=value, default=None))


def _empty(condition: Condition) -> bool:
    if condition.values is not None:
        return not condition.values
    return _before(condition.kind, condition.high, condition.low)


def _joined(conditions: Sequence[Condition]) -> Iterator[Condition]:
    lists = [each for each in conditions if each.values is not None]
    columns: dict[tuple[str | int, str], list[Condition]] = {}
    for each in conditions:
        if each.values is None:
            columns.setdefault((each.column, each.kind), []).append(each)
    yield from lists
    for (_, kind), ranges in columns.items():
        open_ = [each for each in ranges if each.low is None]
        rest = sorted((each for each in ranges if each.low is not None), key=partial(_low, kind))
        found = [*open_, *rest][:1]
        for each in [*open_, *rest][1:]:
            if found[-1].high is not None and each.low is not None and _value(kind, found[-1].high) == _low(kind, each):
                found[-1] = replace(found[-1], high=each.high)
            else:
                found.append(each)
        yield from found


def _low(kind: str, condition: Condition) -> Any:
    return _value(kind, condition.low or "")


def apart(one: Bound, other: Bound) -> bool:
    """Return whether it is sure that no row meets both bounds."""
    return any(a.column == b.column and a.kind == b.kind and a.misses(b) for a in one for b in other)


def found_in_lake(bound: Bound) -> bool:
    """Return whether the rows of a bound are known by the lake's values."""
    return bool(bound) and all(each.found_in_lake for each in bound)


def _condition(strategy: str, column: str, oid: int, text: str) -> Condition | None:
    kind = _KINDS.get(oid)
    if kind is None:
        return None
    if strategy == "r" and kind != "text" and (found := _RANGE.fullmatch(text)):
        ends = [_end(kind, each) for each in found.groups()]
        return None if "" in ends else Condition(column, kind, low=ends[0], high=ends[1])
    if strategy == "l" and _LIST.fullmatch(text):
        values = tuple(_literals(text))
        return (
            Condition(column, kind, values=values)
            if all(each is None or _known(kind, each) for each in values)
            else None
        )
    return None


def _end(kind: str, text: str) -> str | None:
    """Return the end of a range: None for no end, nothing for one that is not known."""
    if text in ("MINVALUE", "MAXVALUE"):
        return None
    value = _plain(text)
    return value if _known(kind, value) else ""


def _literals(text: str) -> Iterator[str | None]:
    inner = text[text.index("(") + 1 : -1]
    for each in re.findall(_LITERAL, inner):
        yield None if each == "NULL" else _plain(each)


def _plain(literal: str) -> str:
    return literal[1:-1].replace("''", "'") if literal.startswith("'") else literal


def _known(kind: str, value: str) -> bool:
    try:
        _value(kind, value)
    except ValueError:
        return False
    return True


def _value(kind: str, text: str) -> Any:
    if kind == "int":
        return int(text)
    if kind == "date":
        return date.fromisoformat(text)
    if kind in ("timestamp", "instant"):
        return datetime.fromisoformat(text)
    return text


def _before(kind: str, high: str | None, low: str | None) -> bool:
    return high is not None and low is not None and _value(kind, high) <= _value(kind, low)

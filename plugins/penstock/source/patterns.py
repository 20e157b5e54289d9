"""Which tables a pipeline means: patterns `schema.table` held against what the source has. Pure.

A `*` matches any characters within one name; case counts. A name with a dot, a star or a quote of its own is
written in double quotes, as in SQL. Of a partitioned table that is chosen the partitions are not chosen again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.config.model import Patterns
from penstock.config.validators import TABLE_PATTERN

if TYPE_CHECKING:  # DAG files read patterns, and no catalog
    from penstock.source.catalog import Relation

_PATTERN = re.compile(TABLE_PATTERN)
_EVERYTHING = "*.*"
"""The pattern that is never misspelt: the tables of an empty database are yet to come."""
_NOT_TABLES = {"v": "a view", "m": "a materialised view", "f": "a foreign table"}
_NOT_LOGGED = {"u": "an unlogged table", "t": "a temporary table"}


@dataclass(frozen=True, slots=True)
class Choice:
    """Hold what the patterns choose, and with the reason what they match and logical decoding does not carry.

    `unmatched_include` and `unmatched_exclude` are patterns that had no effect, but `*.*` is none of them; `inseparable` are partitions that a
    pattern excludes although their partitioned table is chosen, which carries their rows all the same.
    """

    chosen: tuple[Relation, ...]
    left_out: tuple[tuple[Relation, str], ...]
    unmatched_include: tuple[str, ...]
    unmatched_exclude: tuple[str, ...]
    inseparable: tuple[Relation, ...]


def choose(relations: Sequence[Relation], tables: Patterns) -> Choice:
    """Hold the patterns of a pipeline against the source's relations."""
    is_wanted, is_excluded = chosen_by(tables), named_by(tables.exclude)
    wanted = [relation for relation in relations if is_wanted(relation.schema, relation.name)]
    fit = [relation for relation in wanted if _unfit(relation) is None]
    covered = _below({relation.oid for relation in fit}, relations)
    return Choice(
        chosen=tuple(relation for relation in fit if relation.oid not in covered),
        left_out=tuple(
            (relation, reason)
            for relation in wanted
            if (reason := _unfit(relation)) is not None and relation.oid not in covered
        ),
        unmatched_include=tuple(each for each in tables.include if each != _EVERYTHING and not _has_effect(each, fit)),
        unmatched_exclude=tuple(each for each in tables.exclude if not _has_effect(each, relations)),
        inseparable=tuple(each for each in relations if each.oid in covered and is_excluded(each.schema, each.name)),
    )


def in_pattern(name: str) -> str:
    """Return a name as a pattern takes it: in quotes where it has a dot, a star or a quote."""
    return f'"{name.replace(chr(34), chr(34) * 2)}"' if set(name) & set('."*') else name


def chosen_by(tables: Patterns) -> Callable[[str, str], bool]:
    """Return a function that says whether patterns choose a table, given by schema and name."""
    is_included, is_excluded = named_by(tables.include), named_by(tables.exclude)
    return lambda schema, name: is_included(schema, name) and not is_excluded(schema, name)


def named_by(patterns: Iterable[str]) -> Callable[[str, str], bool]:
    """Return a function that says whether one of the patterns names a table, given by schema and name."""
    # a NUL between the two: no name has one
    regexes = [re.compile(_PATTERN.sub(_regex, each)) for each in patterns]
    return lambda schema, name: any(each.fullmatch(f"{schema}\0{name}") for each in regexes)


def _regex(pattern: re.Match[str]) -> str:
    """Return the regular expression of a whole pattern."""
    parts = []
    for part in ("schema", "table"):
        quoted = pattern[f"{part}_quoted"]
        words = pattern[part].split("*") if quoted is None else [quoted.replace('""', '"')]
        parts.append("[^\0]*".join(map(re.escape, words)))
    return "\0".join(parts)


def _has_effect(pattern: str, relations: Iterable[Relation]) -> bool:
    is_named = named_by([pattern])
    return any(is_named(relation.schema, relation.name) for relation in relations)


def _unfit(relation: Relation) -> str | None:
    return _NOT_TABLES.get(relation.kind) or _NOT_LOGGED.get(relation.persistence)


def _below(oids: Collection[int], relations: Sequence[Relation]) -> set[int]:
    """Return the partitions, of whatever depth, of these tables."""
    by_oid = {relation.oid: relation for relation in relations}
    return {relation.oid for relation in relations if any(above in oids for above in _above(relation, by_oid))}


def _above(relation: Relation, by_oid: Mapping[int, Relation]) -> Iterable[int]:
    """Yield the partitioned tables above a partition, the nearest first. Ordinary inheritance does not count."""
    while relation.is_partition and relation.parents:
        (parent,) = relation.parents
        yield parent
        if parent not in by_oid:
            return
        relation = by_oid[parent]

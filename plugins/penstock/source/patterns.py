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
from penstock.errors import ConfigError

if TYPE_CHECKING:  # DAG files read patterns, and no catalog
    from penstock.source.catalog import Relation

_PATTERN = re.compile(TABLE_PATTERN)
_EVERYTHING = "*.*"
_NOT_TABLES = {"v": "a view", "m": "a materialised view", "f": "a foreign table"}
_NOT_LOGGED = {"u": "an unlogged table", "t": "a temporary table"}


@dataclass(frozen=True, slots=True)
class Pattern:
    """Match tables by schema and name."""

    text: str
    schema: re.Pattern[str]
    name: re.Pattern[str]

    @classmethod
    def parse(cls, text: str) -> Pattern:
        """Read one pattern; raises ConfigError("config-invalid")."""
        match = _PATTERN.fullmatch(text)
        if match is None:
            raise ConfigError(
                "config-invalid",
                f"expected a pattern schema.table such as public.* or public.orders, got {text!r} instead; "
                'a name that holds a dot, a star or a quote is written in double quotes: public."a.b"',
            )
        return cls(text, _name_pattern(match, "schema"), _name_pattern(match, "table"))

    @property
    def is_open(self) -> bool:
        """Return whether it names every table there is, and so is never misspelt: those of an empty database are yet to come."""
        return self.text == _EVERYTHING

    def names(self, schema: str, name: str) -> bool:
        """Return whether the pattern names this schema and table."""
        return bool(self.schema.fullmatch(schema) and self.name.fullmatch(name))


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Name something that a pattern matches and logical decoding does not carry."""

    schema: str
    name: str
    reason: str

    @property
    def qualified(self) -> str:
        """Name it for a message."""
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class Choice:
    """Hold what the patterns choose.

    `unmatched_include` and `unmatched_exclude` are patterns that had no effect, but `*.*` is none of them; `inseparable` are partitions that a
    pattern excludes although their partitioned table is chosen, which carries their rows all the same.
    """

    chosen: tuple[Relation, ...]
    left_out: tuple[LeftOut, ...]
    unmatched_include: tuple[str, ...]
    unmatched_exclude: tuple[str, ...]
    inseparable: tuple[Relation, ...]


def choose(relations: Sequence[Relation], tables: Patterns) -> Choice:
    """Hold the patterns of a pipeline against the source's relations; raises ConfigError for an unreadable pattern."""
    include = [Pattern.parse(text) for text in tables.include]
    exclude = [Pattern.parse(text) for text in tables.exclude]
    is_wanted = chosen_by(tables)
    wanted = [relation for relation in relations if is_wanted(relation.schema, relation.name)]
    fit = [relation for relation in wanted if _unfit(relation) is None]
    covered = _below({relation.oid for relation in fit}, relations)
    return Choice(
        chosen=tuple(relation for relation in fit if relation.oid not in covered),
        left_out=tuple(
            LeftOut(relation.schema, relation.name, reason)
            for relation in wanted
            if (reason := _unfit(relation)) is not None and relation.oid not in covered
        ),
        unmatched_include=tuple(each.text for each in include if not (each.is_open or _names_any(each, fit))),
        unmatched_exclude=tuple(each.text for each in exclude if not _names_any(each, relations)),
        inseparable=tuple(
            each for each in relations if each.oid in covered and _named(exclude, each.schema, each.name)
        ),
    )


def in_pattern(name: str) -> str:
    """Return a name as a pattern takes it: in quotes where it has a dot, a star or a quote."""
    return f'"{name.replace(chr(34), chr(34) * 2)}"' if set(name) & set('."*') else name


def chosen_by(tables: Patterns) -> Callable[[str, str], bool]:
    """Return a function that says whether patterns choose a table, given by schema and name; raises ConfigError."""
    include = [Pattern.parse(text) for text in tables.include]
    exclude = [Pattern.parse(text) for text in tables.exclude]

    def chosen(schema: str, name: str) -> bool:
        return _named(include, schema, name) and not _named(exclude, schema, name)

    return chosen


def _named(patterns: Iterable[Pattern], schema: str, name: str) -> bool:
    return any(pattern.names(schema, name) for pattern in patterns)


def _name_pattern(match: re.Match[str], part: str) -> re.Pattern[str]:
    quoted = match[f"{part}_quoted"]
    if quoted is not None:
        return re.compile(re.escape(quoted.replace('""', '"')))
    return re.compile(".*".join(map(re.escape, match[part].split("*"))), re.DOTALL)


def _names_any(pattern: Pattern, relations: Iterable[Relation]) -> bool:
    return any(pattern.names(relation.schema, relation.name) for relation in relations)


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

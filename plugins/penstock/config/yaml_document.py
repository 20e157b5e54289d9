"""A pipeline file's YAML as plain values, each with the line that it stands on; `${NAME}` is replaced by a variable.

Plain means: bounded in size, no key twice, no aliases (ten lines of them can expand to gigabytes), no merges, no tags.
Whatever the bytes of the file are, the outcome is a document or ConfigError("config-invalid") with file and line.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from penstock.errors import ConfigError

MOST_BYTES = 256 << 10
MOST_LEVELS = 20
_PLACEHOLDER = re.compile(r"(\$?)\$\{(\w*)(\}?)")
_UNSAFE = re.compile("[\x00\ud800-\udfff]")
_MERGE = "tag:yaml.org,2002:merge"

_YAML_HINTS = {
    "'\\t' that cannot start": "; indent with blanks, not with tabs",
    "mapping values are not allowed": "; put a text with a colon in quotes, and indent the keys of one section alike",
    "did not find expected <block end>": "; indent the keys of one section alike",
    "expected <block end>": "; indent the keys of one section alike",
    "'%' that cannot start": "; put the text in quotes",
    "'@' that cannot start": "; put the text in quotes, such as '@daily'",
    "'`' that cannot start": "; put the text in quotes",
    "another document": "; one file is one pipeline: give each a file of its own",
    "could not determine a constructor": "; tags (!name) are not read",
    "while scanning an alias": "; put a text that begins with * in quotes, such as '*.*'",
    "expected alphabetic or numeric character": "; put a text that begins with * or & in quotes, such as '*.*'",
}

Location = tuple[str | int, ...]


@dataclass(frozen=True)
class Problem:
    """Say what is wrong with a file: where, which key, and what was expected."""

    path: Path
    line: int
    key: str | None
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {f'{self.key}: ' if self.key else ''}{self.message}"


class InvalidFileError(ConfigError):
    """Name every problem of one file, or of a folder of them."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("config-invalid", "; ".join(map(str, problems)))

    def __reduce__(self) -> tuple[type[InvalidFileError], tuple[tuple[Problem, ...]]]:  # type: ignore[override]
        return type(self), (self.problems,)


def invalid(path: Path, message: str, line: int = 1, key: str | None = None) -> InvalidFileError:
    """Return the error for one problem of a file."""
    return InvalidFileError([Problem(path, line, key, message)])


def kind(value: object) -> str:
    """Name what a value is, without the value."""
    if value is None:
        return "nothing"
    if value in ({}, []):
        return "nothing in it"
    names = {dict: "keys and values", list: "a list", bool: "a boolean", str: "a text"}
    return next((name for each, name in names.items() if isinstance(value, each)), "a number")


@dataclass(frozen=True)
class Document:
    """Hold the values of one file, before any model has looked at them."""

    path: Path
    values: dict[str, Any]
    _lines: Mapping[tuple[str, ...], int]

    @classmethod
    def read(cls, path: Path) -> Document:
        """Read a file; raises ConfigError("config-invalid")."""
        text = _text(path)
        try:
            lines = dict(_lines(path, yaml.compose(text, Loader=_Plain)))
            values = yaml.load(text, Loader=_Plain)  # noqa: S506  # a SafeLoader
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            problem = str(getattr(error, "problem", None) or type(error).__name__)
            hint = next((words for part, words in _YAML_HINTS.items() if part in problem), "")
            reason = f"cannot be read as YAML: {problem.removeprefix('but ')}{hint}"
            raise invalid(path, reason, mark.line + 1 if mark else 1) from None
        if not isinstance(values, dict):
            raise invalid(path, f"expected keys with values, such as name: shop, got {kind(values)}")
        return cls(path, values, lines)

    def line(self, location: Location) -> int:
        """Return the line of a key or an item, or of the innermost part of its location that the file has."""
        parts = tuple(map(str, location))
        return next((self._lines[parts[:n]] for n in range(len(parts), 0, -1) if parts[:n] in self._lines), 1)

    def without_variables(self, problem: str, location: Location, environment: Mapping[str, str]) -> str:
        """Return a problem with a value, naming again each variable that the value was made of: it may be a secret."""
        for name in {match[2] for text in _texts(self.at(location)) for match in _PLACEHOLDER.finditer(text)}:
            if value := environment.get(name):
                for shown in (value, repr(value)[1:-1]):
                    problem = problem.replace(shown, f"${{{name}}}")
        return problem

    def at(self, location: Location) -> Any:
        """Return what the file itself has at a location, or the innermost part of it that is there."""
        value: Any = self.values
        for part in location:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):  # a key that the file leaves out, or a part that is no key
                break
        return value

    def expanded(self, environment: Mapping[str, str]) -> dict[str, Any]:
        """Return the values with every `${NAME}` replaced; `$${NAME}` stands for the text `${NAME}`.

        Raises ConfigError("config-invalid") for a variable that is not set or empty: an empty part of a path or an
        address would quietly mean another place.
        """
        return {key: self._expand(value, environment, (key,)) for key, value in self.values.items()}

    def _expand(self, value: Any, environment: Mapping[str, str], location: Location) -> Any:
        if isinstance(value, dict):
            return {key: self._expand(item, environment, (*location, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self._expand(item, environment, (*location, at)) for at, item in enumerate(value)]
        if not isinstance(value, str):
            return value

        def refuse(problem: str) -> ConfigError:
            return invalid(self.path, problem, self.line(location), ".".join(map(str, location)))

        def lookup(match: re.Match[str]) -> str:
            escaped, name, closed = match.groups()
            if escaped:
                return match[0][1:]
            if not (name and closed):
                raise refuse("expected a variable as ${NAME}, letters, digits and _; write $${ for the text ${ itself")
            if not environment.get(name):
                state = "empty" if name in environment else "not set"
                raise refuse(f"the environment variable {name} is {state}; set it for Airflow and for the command line")
            return environment[name]

        expanded = _PLACEHOLDER.sub(lookup, value)
        if _UNSAFE.search(expanded):
            raise refuse("expected text, got a character that no program can store (U+0000 or half of a surrogate)")
        return expanded


def _texts(value: Any) -> Iterator[str]:
    """Yield every text of a value."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)
    elif isinstance(value, str):
        yield value


class _Plain(yaml.SafeLoader):
    """Refuse aliases where they are read, before they are expanded, and name the line of an impossible number or date."""

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise self._refusal("an alias (*name); write the value out")
        if self._depth == MOST_LEVELS:
            raise self._refusal(f"too many brackets or keys inside each other, at most {MOST_LEVELS} levels are read")
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1

    def _refusal(self, problem: str) -> yaml.YAMLError:
        return yaml.composer.ComposerError(None, None, problem, self.peek_event().start_mark)  # type: ignore[no-untyped-call]

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # PyYAML's own signature
        try:
            return super().construct_object(node, deep=deep)
        except (ValueError, OverflowError):
            raise yaml.constructor.ConstructorError(
                None, None, "a number or date that does not exist; put a text in quotes", node.start_mark
            ) from None


def _text(path: Path) -> str:
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise invalid(path, "expected a readable UTF-8 pipeline file, got no regular file")
        if found.st_size > MOST_BYTES:
            raise invalid(path, f"expected at most {MOST_BYTES >> 10} KiB, got {found.st_size >> 10} KiB")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.reason if isinstance(error, UnicodeDecodeError) else error.strerror
        raise invalid(path, f"expected a readable UTF-8 pipeline file, got: {reason}") from error


def _lines(path: Path, node: yaml.Node | None, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield on which line each key and item stands.

    Refuses what YAML forbids and its readers let pass: the last of two equal keys would win unseen.
    """
    if isinstance(node, yaml.SequenceNode):
        for at, item in enumerate(node.value):
            yield (*above, str(at)), item.start_mark.line + 1
            yield from _lines(path, item, (*above, str(at)))
    if not isinstance(node, yaml.MappingNode):
        return
    seen: set[str] = set()
    for key, value in node.value:
        name, line = str(key.value), key.start_mark.line + 1
        here = (*above, name)
        if key.tag == _MERGE:
            raise invalid(path, "expected keys, got a merge (<<); write the values out", line, ".".join(here))
        if name in seen:
            raise invalid(path, "expected every key once, got it again; keep one of them", line, ".".join(here))
        seen.add(name)
        yield here, line
        yield from _lines(path, value, here)

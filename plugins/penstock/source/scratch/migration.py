"""Run the files of a migration on a scratch database, as `psql` runs them: statement by statement, until the first error.

So files may hold transactions of their own, statements that no transaction takes, DO blocks, COPY data and psql's commands.
What is repeated of an error holds no value of a row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.config.connections import Connection
from penstock.errors import ConfigError
from penstock.source.scratch.programs import Programs

_ERROR = re.compile(
    r"^psql:(?P<file>.+?):(?P<line>\d+): (?:ERROR|FATAL|error): +(?:(?P<state>[0-9A-Z]{5}): )?(?P<said>.*)$", re.M
)
_STATEMENT = re.compile(r"^(?:psql:.+?:\d+: )?STATEMENT: +(?P<text>.*(?:\n(?!psql:|LINE |ERROR).*)*)", re.M)
_VALUES = re.compile(r"2[23]...")
"""Classes of errors whose messages quote what they stumbled over."""
_DDL = re.compile(r"(alter|comment|create|drop|grant|reindex|revoke|set|truncate|refresh|cluster|vacuum)\b", re.I)
_SHOWN = 160
_OPEN = "penstock: the last transaction is open"
_END = f"select case when pg_catalog.now() < pg_catalog.statement_timestamp() then '{_OPEN}' end"


@dataclass(frozen=True, slots=True)
class Tried:
    """Say what files did that ended well: the errors that they passed over by their own wish."""

    passed_over: tuple[str, ...] = ()


def run(programs: Programs, scratch: Connection, files: Sequence[Path]) -> Tried:
    """Run the files one after the other in one session; raises ConfigError("migration-failed")."""
    named = [part for file in files for part in ("-f", str(file))]
    said = programs.run(
        "psql",
        *("-X", "-q", "-A", "-t", "-w", "-b", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose"),
        *named,
        *("-c", _END),
        place=scratch,
    )
    if said.returncode != 0:
        raise _failed(said.stderr, files)
    if said.stdout.rstrip().endswith(_OPEN):
        raise ConfigError(
            "migration-failed",
            f"expected {_names(files)} to end outside of a transaction, but the last one is open and so is rolled back; "
            "end it with COMMIT",
        )
    return Tried(tuple(_failure_message(found) for found in _ERROR.finditer(said.stderr)))


def _failed(said: str, files: Sequence[Path]) -> ConfigError:
    found = _ERROR.search(said)
    if found is None:
        first = next(iter(said.strip().splitlines()), "no message")
        return ConfigError("migration-failed", f"expected psql to run {_names(files)}, got: {first}; correct the file")
    statement = _STATEMENT.search(said, found.end())
    which = _shown(statement["text"]) if statement else ""
    return ConfigError(
        "migration-failed",
        f"expected {_names(files)} to run on the source's schema, but {_failure_message(found)}{which}; correct the file, or give the "
        "scratch database what it lacks",
    )


def _failure_message(found: re.Match[str]) -> str:
    state = found["state"]
    hidden = state is not None and _VALUES.fullmatch(state)
    message = "a message that may quote values and is not shown" if hidden else found["said"]
    code = f" ({state})" if state else ""
    return f"the statement that ends at line {found['line']} of {Path(found['file']).name} failed: {message}{code}"


def _shown(statement: str) -> str:
    """Return a statement that defines something in one line; of any other, whose text may hold values, nothing."""
    line = " ".join(re.sub(r"--[^\n]*", "", statement).split()).rstrip(";")
    if not _DDL.match(line):
        return ""
    return f"; it is: {line if len(line) <= _SHOWN else f'{line[:_SHOWN]} ...'}"


def _names(files: Sequence[Path]) -> str:
    return ", ".join(file.name for file in files)

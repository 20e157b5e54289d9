"""The event trigger that writes what each command of DDL made of a table into the WAL, where a reader finds it in its place.

A superuser installs it with the statement that `install_statement` returns; Penstock itself only looks whether it is there. Anybody
may write a message like its own: the source proves each one (`peek`), by a secret that stays there.
"""

from dataclasses import dataclass
from typing import Literal, LiteralString

from psycopg import sql

from penstock.shapes.ddl_message import PREFIX, VERSION
from penstock.source.server_errors import translating
from penstock.source.session import SourceSession, composed
from penstock.sql import load

Condition = Literal["installed", "missing", "disabled", "old", "new"]


@dataclass(frozen=True, slots=True)
class DdlTrigger:
    """Say which version of the trigger's function is there, None for none, and its token, None where it may miss commands.

    One of another version than ours has no token: it writes what we do not read.
    """

    version: int | None
    token: str | None

    @property
    def condition(self) -> Condition:
        """Return how it stands: of an older or a newer version than ours it writes what we do not read."""
        if self.version is None:
            return "missing"
        if self.version != VERSION:
            return "old" if self.version < VERSION else "new"
        return "disabled" if self.token is None else "installed"

    @property
    def problem(self) -> str | None:
        """Say what is wrong, None where nothing is."""
        return {
            "installed": None,
            "missing": "the event trigger is not installed in this database",
            "disabled": "one of its three event triggers is missing, restricted, or not enabled in every session (enable always), "
            "or a function or the secret of schema penstock_ddl is missing, of another owner, or has other rights than it was made with",
            "old": f"its version {self.version} is older than {VERSION}, which this Penstock reads",
            "new": f"its version {self.version} is newer than {VERSION}, which this Penstock reads",
        }[self.condition]


def read_trigger(conn: SourceSession) -> DdlTrigger:
    """Look whether the trigger is there; raises SourceError."""
    ((version, token),) = conn.ask(composed("ddl_trigger/state", token=_token()))
    return DdlTrigger(version, token if version == VERSION else None)


def install_statement() -> str:
    """Return what a superuser runs once in the source's database; run again, it changes nothing or brings up to date."""
    return _install(sql.SQL(_statement("source/ddl_trigger/emit")).format(prefix=sql.Literal(PREFIX)))


def record(conn: SourceSession) -> None:
    """Have each command of DDL tell a table of this scratch database what it would tell the WAL; raises SourceError."""
    with translating(conn.place):
        conn.execute(load("source/ddl_trigger/recorder").encode())
        conn.execute(_install(sql.SQL("insert into penstock_ddl.told (content) values (each)")).encode())


def recorded(conn: SourceSession) -> list[bytes]:
    """Return what was told since; raises SourceError."""
    return [content for (content,) in conn.rows("ddl_trigger/recorded")]


def _install(emit: sql.Composable) -> str:
    parts = {"version": sql.Literal(VERSION), "emit": emit, "token": _token()}
    report = composed("ddl_trigger/report", **parts).as_string(None)
    wrote = _statement("source/ddl_trigger/wrote")
    bodies = {"report": sql.SQL(f"$report${report}$report$"), "wrote": sql.SQL(f"$wrote${wrote}$wrote$")}
    return composed("ddl_trigger/install", **bodies).as_string(None)


def remove_statement() -> str:
    """Return what a superuser runs to remove it."""
    return load("source/ddl_trigger/remove")


def _token() -> sql.SQL:
    return sql.SQL(_statement("source/ddl_trigger/token"))


def _statement(name: str) -> LiteralString:
    """Return a statement that goes into another one, without the comment at its head."""
    return "\n".join(line for line in load(name).splitlines() if not line.startswith("--"))

"""What the source's drivers complain about, put into our own kinds of error.

The SQLSTATE decides, with the English text where one SQLSTATE stands for several things. Only the server's
primary message is repeated, and only from the classes of error that cannot hold values of rows; DETAIL, CONTEXT
and STATEMENT never are. Source: PostgreSQL documentation, "PostgreSQL Error Codes"; messages of versions 14 to 18.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import adbc_driver_manager
import psycopg

from penstock.errors import SourceError

# Connections, features, transactions, logins, names, resources, states, operators, systems, the server's inside.
# Left out: data (22), constraints (23), user code (38, 39, P0): their messages quote what they stumbled over.
_SPEAKABLE = re.compile(r"(08|0A|25|28|3D|3F|40|42|53|54|55|57|58|XX)...")
# What libpq and its wrappers say before there is a session: names and reasons, never a value.
_CONNECTING = re.compile(
    "connection to server|translate host name|resolve host|connection is (closed|lost)|connection timeout"
    "|server closed the connection|SSL|invalid .+ value"
)
_HEAD = re.compile(r".*(?:failed|is bad|connect|ERROR|FATAL): +")
_UNSPOKEN = "a message that may quote a row's values and is not shown; it is in the server's log"


@dataclass(frozen=True, slots=True)
class _Rule:
    """Say which slug an error gets: the first rule whose patterns match its SQLSTATE and its message."""

    slug: str
    states: str
    text: str
    expected: str
    next_step: str
    speakable: bool = False  # its text quotes nothing but names, whatever the class of its SQLSTATE


_RULES = (
    _Rule(
        "source-auth",
        "28...",
        "",
        "to accept the login",
        "check login and password in the connection, and pg_hba.conf on the server",
    ),
    _Rule(
        "source-auth",
        "",
        "password authentication failed|no password supplied|no pg_hba.conf entry"
        "|role .+ does not exist|not permitted to log in",
        "to accept the login",
        "check login and password in the connection, and pg_hba.conf on the server",
    ),
    _Rule(
        "source-auth",
        "",
        "must be superuser or replication role|permission denied to start WAL sender",
        "to let the role open a replication connection",
        "run: alter role ... replication (on a managed service: grant its replication role)",
    ),
    _Rule(
        "source-auth",
        "3D000|",
        "^database .+ does not exist|permission denied for database",
        "to have the database and let the role in",
        "check the database's name in the connection and the role's CONNECT privilege",
    ),
    _Rule(
        "source-auth",
        "42501",
        "",
        "to grant what this takes",
        "grant the role the privilege; `penstock check` lists all that are missing",
    ),
    _Rule(
        "slot-missing",
        "42704",
        "replication slot",
        "to have the replication slot",
        "if it was dropped, its changes are gone: copy the tables anew",
    ),
    _Rule(
        "snapshot-gone",
        "42704|22023|55000",
        "snapshot",
        "to still have the exported snapshot",
        "run again: finished tables stay, the others are copied under a snapshot of their own",
        speakable=True,
    ),
    _Rule(
        "publication-missing",
        "42704",
        "publication",
        "to have the publication at every position of the WAL that is read",
        "it was dropped, or made after the slot: changes cannot be decoded; copy the tables anew",
    ),
    _Rule("slot-exists", "42710", "replication slot", "to have no slot of this name", "choose another, or adopt it"),
    _Rule(
        "slot-in-use",
        "55006",
        "",
        "to find nobody else at the slot",
        "wait for the other session, or end it if it is a left-over",
    ),
    _Rule(
        "source-error",
        "58P01",
        r"\.spill|\.snap",
        "to have the files into which it decodes",
        "run again: decoding starts anew and writes them again; if it comes back, look for what deletes in pg_replslot",
    ),
    _Rule(
        "slot-lost",
        "55000|58P01",
        "can no longer (get changes|access)|invalidated|cannot be advanced|WAL segment .* removed",
        "to still have the WAL that the slot needs",
        "the slot cannot be read again: drop it, make a new one and copy the tables anew",
    ),
    _Rule(
        "slot-ahead",
        "55000",
        "cannot advance replication slot",
        "to have the slot at or before the position to confirm",
        "somebody else consumed changes of the slot: recover by copying the tables anew",
    ),
    _Rule(
        "slot-unusable",
        "55000|0A000",
        "not created in this database|cannot use (physical )?replication slot|cannot use .+ with a physical",
        "to have a logical slot of this database that is nobody's copy",
        "a slot that a standby keeps in sync is read on its primary; else choose another name for the slot",
    ),
    _Rule(
        "preflight-failed",
        "0A000",
        "while in recovery",
        "to decode on a standby",
        "that takes PostgreSQL 16: lead the connection to the primary",
    ),
    _Rule(
        "preflight-failed",
        "55000",
        "wal_level",
        "to have wal_level = logical",
        "set it in postgresql.conf (on a standby: on the primary) and restart the server",
    ),
    _Rule(
        "no-free-slot",
        "53400",
        "replication slots are in use",
        "to have a free replication slot",
        "drop a slot that nobody reads, or raise max_replication_slots and restart the server",
    ),
    _Rule(
        "source-error",
        "53400",
        "temporary file size",
        "to have room for what it decodes",
        "raise temp_file_limit for the role, or lower capture.max_wal_bytes",
    ),
    _Rule(
        "no-free-slot",
        "53300",
        "max_wal_senders|standby connections",
        "to have a free WAL sender",
        "wait for another copy or base backup, or raise max_wal_senders and restart the server",
    ),
    _Rule(
        "source-error",
        "25001",
        "performed writes",
        "to be outside of any transaction",
        "connect to the server itself: a pooler between us keeps transactions open",
    ),
    _Rule(
        "source-out-of-memory",
        "53200|XX000|54000|54001",
        "out of memory|invalid memory alloc|too much output for sql interface",
        "to have the memory that this takes",
        "lower capture.work_mem or capture.max_wal_bytes, or give the server more memory, then run again",
    ),
    _Rule(
        "source-disk-full",
        "53100",
        "",
        "to have room on its disk",
        "free space on the source at once: if WAL fills it, see `penstock health` for who keeps it",
    ),
    _Rule(
        "recovery-conflict",
        "40001|40P01|57P0.",
        "conflict with recovery",
        "to let us read on while it replays",
        "run again; if it comes back, raise max_standby_streaming_delay or read from the primary",
    ),
    _Rule(
        "source-timeout",
        "57014",
        "",
        "to answer within statement_timeout",
        "run again; raise the time limit if the work is only large",
    ),
    _Rule(
        "source-timeout",
        "55P03",
        "",
        "to grant a lock within lock_timeout",
        "run again when the session that holds the lock has ended",
    ),
    _Rule(
        "source-unreachable",
        "08...|53300|57P0.|25P0[34]",
        "",
        "to accept the connection and keep it",
        "run again when the server is up and has room for connections",
    ),
)
_UNREACHABLE = _Rule(
    "source-unreachable",
    "",
    "",
    "to accept the connection and keep it",
    "check host and port in the connection, the network, and that the server is up",
)
_OTHER = _Rule(
    "source-error", "", "", "to carry out a statement", "read the server's log for the whole message, then run again"
)


def translate(error: BaseException, place: str) -> SourceError:
    """Return a driver's error as one of our kinds; `place` says where the source is, without a secret."""
    state, said = _state(error), _primary(error)
    rule = _rule(error, state, said)
    shown = said if rule.speakable or _is_speakable(error, state) else _UNSPOKEN
    code = f" ({state})" if state else ""
    return SourceError(rule.slug, f"expected {place} {rule.expected}, got: {shown}{code}; {rule.next_step}")


@contextmanager
def translating(place: str) -> Iterator[None]:
    """Raise every error of the drivers inside as a SourceError, without the driver's own words behind it."""
    try:
        yield
    except (psycopg.Error, adbc_driver_manager.Error) as error:
        # `from None`: a chained driver error would print DETAIL and CONTEXT in the traceback
        raise translate(error, place) from None


def _rule(error: BaseException, state: str | None, said: str) -> _Rule:
    for rule in _RULES:
        if re.fullmatch(rule.states, state or "") and re.search(rule.text, said):
            return rule
    lost = state is None and isinstance(error, (psycopg.OperationalError, adbc_driver_manager.OperationalError))
    return _UNREACHABLE if lost else _OTHER


def _state(error: BaseException) -> str | None:
    return getattr(error, "sqlstate", None)


def _primary(error: BaseException) -> str:
    """Return the server's primary message; for errors that no server sent, the driver's first sentence."""
    if isinstance(error, psycopg.Error) and error.diag.message_primary:
        return error.diag.message_primary
    details = dict(getattr(error, "details", None) or ())
    if primary := details.get(b"PG_DIAG_MESSAGE_PRIMARY"):
        return bytes(primary).decode("utf-8", "replace")
    return _HEAD.sub("", _first_line(error))


def _is_speakable(error: BaseException, state: str | None) -> bool:
    return bool(_SPEAKABLE.fullmatch(state) if state else _CONNECTING.search(_first_line(error)))


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0]

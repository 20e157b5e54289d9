"""What the source's drivers complain about, put into our own kinds of error, by one table of the servers' complaints.

The SQLSTATE decides, with the English text where one SQLSTATE stands for several things. Only the server's
primary message is repeated, and only from the classes of error that cannot hold values of rows; DETAIL, CONTEXT
and STATEMENT never are. Source: PostgreSQL documentation, "PostgreSQL Error Codes"; messages of versions 14 to 18.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import adbc_driver_manager
import psycopg

from penstock.errors import SourceError

_COMPLAINTS = r"""
source-auth: to accept the login
  check login and password in the connection, and pg_hba.conf on the server
  if 28...
  if none password authentication failed|no password supplied|no pg_hba.conf entry|role .+ does not exist
     |not permitted to log in
source-auth: to let the role open a replication connection
  run: alter role ... replication (on a managed service: grant its replication role)
  if none must be superuser or replication role|permission denied to start WAL sender
source-auth: to have the database and let the role in
  check the database's name in the connection and the role's CONNECT privilege
  if 3D000|none ^database .+ does not exist|permission denied for database
preflight-failed: to let a replication role decode with pgoutput
  add pgoutput to output_plugin_libraries on the server, and reload its configuration
  if 42501 may not be used as an output plugin
source-auth: to grant what this takes
  grant the role the privilege; `penstock check` lists all that are missing
  if 42501
slot-missing: to have the replication slot
  if it was dropped, its changes are gone: copy the tables again
  if 42704 replication slot
snapshot-gone: to still have the exported snapshot
  run again: finished tables stay, the others are copied under a snapshot of their own
  if 42704|22023|55000 snapshot
publication-missing: to have the publication at every position of the WAL that is read
  it was dropped, or made after the slot: changes cannot be decoded; copy the tables again
  if 42704 publication
slot-exists: to have no slot of this name
  choose another, or adopt it
  if 42710 replication slot
slot-in-use: to find no other session at the slot
  wait for the other session, or end it if it is a left-over
  if 55006
source-error: to have the files into which it decodes
  run again: decoding starts over and writes them again; if it comes back, look for what deletes in pg_replslot
  if 58P01 \.spill|\.snap
slot-lost: to still have the WAL that the slot needs
  the slot cannot be read again: drop it, make a new one and copy the tables again
  if 55000|58P01 can no longer (get changes|access)|invalidated|cannot be advanced|WAL segment .* removed
slot-ahead: to have the slot at or before the position to confirm
  another session consumed changes of the slot: recover by copying the tables again
  if 55000 cannot advance replication slot
slot-unusable: to have a logical slot of this database that is no synced copy
  a slot that a standby keeps in sync is read on its primary; else choose another name for the slot
  if 55000|0A000 not created in this database|cannot use (physical )?replication slot|cannot use .+ with a physical
preflight-failed: to decode on a standby
  that takes PostgreSQL 16: lead the connection to the primary
  if 0A000 while in recovery
preflight-failed: to have wal_level = logical
  set it in postgresql.conf (on a standby: on the primary) and restart the server
  if 55000 wal_level
no-free-slot: to have a free replication slot
  drop a slot without a reader, or raise max_replication_slots and restart the server
  if 53400 replication slots are in use
decoding-limit: to have room for what it decodes
  raise temp_file_limit for the role, or lower capture.max_wal_bytes
  if 53400 temporary file size
no-free-slot: to have a free WAL sender
  wait for another copy or base backup, or raise max_wal_senders and restart the server
  if 53300 max_wal_senders|standby connections
source-error: to be outside of any transaction
  connect to the server itself: a pooler between us keeps transactions open
  if 25001 performed writes
decoding-limit: to be able to hand over each row in one piece
  one row is larger than a message may be: see what penstock skip-transaction says
  if XX000|54000 invalid memory alloc|too much output for sql interface
  if 54000 out of memory|string buffer exceeds
source-out-of-memory: to have the memory that this takes
  lower capture.work_mem or capture.max_wal_bytes, or give the server more memory, then run again
  if 53200|XX000|54001 out of memory|stack depth limit
source-corrupt: to find its own files whole
  call the server's owner at once; read on from a sound copy of the server, and copy the tables again
  if XX001|XX002|58030
  if XX000|58P01 invalid page in block|could not read block|(missing|unexpected) (toast )?chunk
     |could not open file "(base|global|pg_tblspc|pg_xact|pg_multixact)/|could not access status of transaction
source-corrupt: to find its own WAL whole
  call the server's owner at once; read on from a sound copy of the server, and copy the tables again
  # what the reader of the WAL says: by itself (14), or after "could not find record ..." (15 and later)
  if XX000 could not find (a valid )?record|could not find logical decoding starting point
     |resource manager (data checksum|ID)|incorrect prev-link|contrecord|(record|block_id|info bits|magic number
     |pageaddr) .*at [0-9A-F]+/[0-9A-F]+|in (WAL|log) segment
source-disk-full: to have room on its disk
  free space on the source at once: if WAL fills it, see `penstock health` for who keeps it
  if 53100
recovery-conflict: to let us read on while it replays
  run again; if it comes back, raise max_standby_streaming_delay or read from the primary
  if 40001|40P01|57P0. conflict with recovery
source-timeout: to answer within statement_timeout
  run again; raise the time limit if the work is only large
  if 57014
source-timeout: to grant a lock within lock_timeout
  run again when the session that holds the lock has ended
  if 55P03
source-unreachable: to accept the connection and keep it
  run again when the server is up and has room for connections
  if 08...|53300|57P0.|25P0[34]
"""
"""Per kind its slug, what the server was expected to do, and the next step; below, each with `if`, which SQLSTATEs it has
(`none` for errors that no server sent) and what is in its message. The first one that matches wins."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Say which slug an error gets whose SQLSTATE and message match one of the patterns, and in which words."""

    slug: str
    expected: str
    next_step: str
    patterns: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = ()


def _rules() -> Iterator[Rule]:
    for part in re.split(r"\n(?=\S)", re.sub(r"\n     +|\n  #.*", "", _COMPLAINTS.strip())):
        head, step, *conditions = part.split("\n")
        slug, _, expected = head.partition(": ")
        pairs = (condition.removeprefix("  if ").partition(" ")[::2] for condition in conditions)
        patterns = ((re.compile(states.replace("none", "")), re.compile(text)) for states, text in pairs)
        yield Rule(slug, expected, step.strip(), tuple(patterns))


RULES = tuple(_rules())
_LOST = Rule(
    "source-unreachable",
    "to accept the connection and keep it",
    "check host and port in the connection, the network, and that the server is up",
)
_OTHER = Rule("source-error", "to carry out a statement", "read the server's log for the whole message, then run again")

# Connections, features, transactions, logins, names, resources, states, operators, systems, the server's inside.
# Left out: data (22), constraints (23), user code (38, 39, P0): their messages quote what they stumbled over.
_SPEAKABLE = re.compile(r"(08|0A|25|28|3D|3F|40|42|53|54|55|57|58|XX)...")
# What libpq and its wrappers say before there is a session: names and reasons, never a value.
_CONNECTING = re.compile(
    "connection to server|translate host name|resolve host|connection is (closed|lost)|connection timeout"
    "|server closed the connection|SSL|invalid .+ value"
)
_HEAD = re.compile(r".*(?:failed|is bad|connect|ERROR|FATAL): +")
_QUOTES_NAMES_ONLY = ("snapshot-gone",)  # whatever the class of the SQLSTATE
_UNSPOKEN = "a message that may quote a row's values and is not shown; it is in the server's log"


def translate(error: BaseException, place: str) -> SourceError:
    """Return a driver's error as one of our kinds; `place` says where the source is, without a secret."""
    rule = _rule(error)
    return SourceError(rule.slug, f"expected {place} {rule.expected}, got: {_shown(error, rule)}; {rule.next_step}")


def shown(error: BaseException) -> str:
    """Return what the server said, as far as it may be repeated, with its SQLSTATE."""
    return _shown(error, _rule(error))


@contextmanager
def translating(place: str) -> Iterator[None]:
    """Raise every error of the drivers inside as a SourceError, without the driver's own words behind it."""
    try:
        yield
    except (psycopg.Error, adbc_driver_manager.Error) as error:
        # `from None`: a chained driver error would print DETAIL and CONTEXT in the traceback
        raise translate(error, place) from None


def _shown(error: BaseException, rule: Rule) -> str:
    state = _state(error)
    speakable = rule.slug in _QUOTES_NAMES_ONLY or (
        _SPEAKABLE.fullmatch(state) if state else _CONNECTING.search(_first_line(error))
    )
    said = _primary(error) if speakable else _UNSPOKEN
    return f"{said} ({state})" if state else said


def _rule(error: BaseException) -> Rule:
    state, said = _state(error), _primary(error)
    for rule in RULES:
        if any(states.fullmatch(state or "") and text.search(said) for states, text in rule.patterns):
            return rule
    lost = state is None and isinstance(error, (psycopg.OperationalError, adbc_driver_manager.OperationalError))
    return _LOST if lost else _OTHER


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


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0]

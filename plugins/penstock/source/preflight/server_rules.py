"""The preflight's rules for the server, the role and the slot. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.source.preflight.report import Asked, Finding, error, names, ok, quoted, warn
from penstock.source.server_info import ServerFacts
from penstock.source.slot import SlotFacts

_OLDEST, _NEWEST = 14, 18
# pgoutput called through SQL functions can crash the server below these (a use after free, fixed in November 2025)
_LEAST_MINOR = {14: 20, 15: 15, 16: 11, 17: 7, 18: 1}
_ORIGINS = _STANDBY = 16
_SCHEDULES_PER_TIMEOUT = 3
_LONG_SECONDS = 60
# measured: what capture's process holds for its largest row's text (docs/postgresql.md)
_ROW_FACTOR, _ROW_BASE_MIB, _ROW_TEXT_MIB = 3.5, 260, 1024


def version(asked: Asked) -> Iterator[Finding]:
    """Check that the server's version is one that we know."""
    server = asked.server
    expected = f"expected PostgreSQL {_OLDEST} to {_NEWEST}, got {server.version}"
    least = _LEAST_MINOR.get(server.major)
    if server.major < _OLDEST:
        yield error("version", expected, "upgrade the server")
    elif least is None:
        yield warn("version", f"{expected}, which was not tested", "try it on a copy of the database first")
    elif server.version_num % 10_000 < least:
        yield warn(
            "version",
            f"expected at least {server.major}.{least}, got {server.version}: decoding through SQL can crash it",
            "install the newest minor version",
        )
    else:
        yield ok("version", f"PostgreSQL {server.version}")
    if server.in_recovery and server.major < _STANDBY:
        yield error("version", f"expected PostgreSQL {_STANDBY} or newer on a standby", "connect to the primary")


def wal_level(asked: Asked) -> Iterator[Finding]:
    """Check that the WAL holds what decoding needs."""
    if asked.server.wal_level == "logical":
        yield ok("wal_level", "logical")
    else:
        yield error(
            "wal_level",
            f"expected logical, got {asked.server.wal_level}",
            "run: alter system set wal_level = 'logical'; then restart the server",
        )


def settings(asked: Asked) -> Iterator[Finding]:
    """Check the other settings that decoding depends on."""
    server = asked.server
    if server.encoding == "SQL_ASCII":
        yield error(
            "server_encoding",
            "expected an encoding, got SQL_ASCII: texts may be anything and could not be read as UTF-8",
            "dump the database and restore it into one with encoding UTF8",
        )
    if server.output_plugins is not None and "pgoutput" not in server.output_plugins:
        yield error("output_plugin_libraries", "expected pgoutput in it", "add pgoutput to the setting and reload")
    if asked.pipeline.source.origin == "none" and server.major < _ORIGINS:
        yield error(
            "source.origin",
            f"expected PostgreSQL {_ORIGINS} or newer for origin: none, got {server.version}",
            "name the origins in source.skip_origins instead",
        )
    if server.temp_file_limit is not None:
        yield warn(
            "temp_file_limit",
            f"expected no limit, got {_mib(server.temp_file_limit)}: a window that decodes to more is refused",
            "raise it for the role, or lower capture.max_wal_bytes",
        )


def wal_keep_size(asked: Asked) -> Iterator[Finding]:
    """Check that a forgotten slot cannot fill the disk, and that a living one is not lost between two captures."""
    subject, limit, window = "max_slot_wal_keep_size", asked.server.max_slot_wal_keep_size, asked.pipeline.capture
    if limit is None:
        yield warn(
            subject,
            "expected a limit, got none: a slot without a reader fills the disk",
            "set it well below the free space of the WAL's disk; beyond it the slot is lost, and the server lives",
        )
    elif limit < 2 * window.max_wal_bytes:
        yield warn(
            subject,
            f"expected at least two windows of capture.max_wal_bytes ({_mib(window.max_wal_bytes)} each), "
            f"got {_mib(limit)}: the slot may be lost before capture runs again",
            "raise it, and reload the server's settings",
            "slot-lost",
        )
    else:
        yield ok(subject, _mib(limit))


def idle_timeout(asked: Asked) -> Iterator[Finding]:
    """Check that the server does not drop the slot's WAL between two captures: it is idle then (18+)."""
    timeout, schedule = asked.server.idle_slot_timeout, asked.schedule_seconds
    if not timeout:
        return
    subject, step = "idle_replication_slot_timeout", "raise it, or let capture run more often"
    got = f"got {timeout} s: the server drops the WAL of a slot that idles longer"
    if schedule is None:
        yield warn(subject, f"expected several times the time between two captures, {got}", step, "slot-lost")
    elif timeout <= schedule:
        yield error(subject, f"expected more than capture's schedule of {schedule} s, {got}", step, "slot-lost")
    elif timeout < _SCHEDULES_PER_TIMEOUT * schedule:
        expected = f"expected {_SCHEDULES_PER_TIMEOUT} times capture's schedule of {schedule} s"
        yield warn(subject, f"{expected}, {got}", step, "slot-lost")
    else:
        yield ok(subject, f"{timeout} s, capture runs every {schedule} s")


def role(asked: Asked) -> Iterator[Finding]:
    """Check that the role may decode, and that a WAL sender is free where a slot has to be made."""
    role, server = asked.role, asked.server
    if role.replication:
        yield ok("role", f"{quoted(role.name)} may replicate")
    else:
        yield error(
            "role",
            f"expected role {quoted(role.name)} to have the REPLICATION attribute",
            f"run: alter role {quoted(role.name)} replication (on a managed service: grant its replication role)",
            "source-auth",
        )
    if asked.own is None and role.senders >= server.max_wal_senders:
        yield error(
            "max_wal_senders",
            f"expected a free WAL sender to make the slot with, got {role.senders} of {server.max_wal_senders} taken",
            "raise max_wal_senders and restart the server",
        )


def free_slots(asked: Asked) -> Iterator[Finding]:
    """Check that the server has a free slot, unless the pipeline's exists."""
    limit = asked.server.max_replication_slots
    taken = f"{len(asked.slots)} of {limit} slots taken"
    if asked.own is None and len(asked.slots) >= limit:
        yield error(
            "max_replication_slots",
            f"expected a free replication slot, got {taken}",
            "drop a slot without a reader, or raise max_replication_slots and restart the server",
            "no-free-slot",
        )
    else:
        yield ok("max_replication_slots", taken)


def slot(asked: Asked) -> Iterator[Finding]:
    """Check the pipeline's slot, if it exists."""
    own, subject = asked.own, f"slot {asked.pipeline.slot}"
    if own is None:
        yield ok(subject, "does not exist, bootstrap will make it")
        return
    problems = list(_slot_problems(subject, own, asked))
    yield from problems or [ok(subject, f"confirmed up to {own.confirmed}")]


def blockers(asked: Asked) -> Iterator[Finding]:
    """Name the open transactions that slot creation would wait for: prepared ones and long ones."""
    if asked.own is not None:
        return
    long = [
        each
        for each in asked.blockers
        if each.prepared is not None or each.age_seconds is None or each.age_seconds >= _LONG_SECONDS
    ]
    if long:
        yield warn(
            "open transactions",
            f"expected none that is prepared or older than {_LONG_SECONDS} s, got: "
            + "; ".join(each.describe() for each in long),
            "end them before bootstrap: the slot cannot be made while they are open",
            "slot-creation-blocked",
        )


def large_rows(_: Asked) -> Iterator[Finding]:
    """Say what memory a large row needs: no view shows how large a table's largest row is."""
    most = (_ROW_FACTOR * _ROW_TEXT_MIB + _ROW_BASE_MIB) / 1024
    yield ok(
        "large rows",
        f"capture holds one large row at a time, in {_ROW_FACTOR} times its text and "
        f"{_ROW_BASE_MIB} MiB (a bytea's text is twice its bytes), so {most:.1f} GiB at most: PostgreSQL sends no row "
        "with more than 1 GiB of text",
    )


def _slot_problems(subject: str, own: SlotFacts, asked: Asked) -> Iterator[Finding]:
    if not (asked.own_slot or asked.pipeline.source.adopt):
        yield error(
            subject,
            "expected no slot of this name, but there is one",
            "drop it if it is not needed, set source.adopt: true to take it over, or choose another source.slot",
            "slot-exists",
        )
    if own.invalidation is not None:
        yield error(
            subject,
            f"expected a slot that can be read, got one that the server has invalidated ({own.invalidation})",
            "drop it; its changes are gone, so the tables must be copied again",
            "slot-lost",
        )
    if unusable := list(_unusable(own, asked.server)):
        yield error(
            subject,
            f"expected a permanent pgoutput slot of database {quoted(asked.server.database)} without two_phase, "
            f"got {names(unusable)}",
            "drop it and let bootstrap make one",
            "slot-unusable",
        )
    if own.active:
        message = f"expected no reader at the slot, got process {own.active_pid}"
        yield warn(subject, message, "find out who owns the process", "slot-in-use")


def _unusable(own: SlotFacts, server: ServerFacts) -> Iterator[str]:
    if own.plugin != "pgoutput":
        yield f"plugin {own.plugin or 'none (a physical slot)'}"
    if own.database is not None and own.database != server.database:
        yield f"database {quoted(own.database)}"
    if own.two_phase:
        yield "two_phase on"
    if own.temporary:
        yield "a temporary slot"
    if own.synced:
        yield "a slot that is synchronised from the primary"


def _mib(size: int) -> str:
    return f"{size >> 20} MiB"


def ddl_trigger(asked: Asked) -> Iterator[Finding]:
    """Check that the event trigger is there, where the pipeline asks for it: without it more changes cost a copy."""
    if asked.ddl_trigger is None:
        return
    if asked.ddl_trigger.problem is None:
        yield ok("ddl_trigger", f"event trigger of version {asked.ddl_trigger.version} is installed")
    else:
        yield warn(
            "ddl_trigger",
            f"expected the event trigger that source.ddl_trigger asks for, but {asked.ddl_trigger.problem}",
            f"a superuser runs what `penstock ddl-trigger {asked.pipeline.name}` prints; docs/runbooks/ddl-trigger-missing.md",
            "ddl-trigger-missing",
        )

"""The preflight's rules for the server, the slot, and the roles that decode and read. Pure."""

import re
from collections.abc import Iterable, Iterator

from penstock.source.preflight.asked import WANTED, Asked
from penstock.source.preflight.findings import Note, names, note, quoted
from penstock.source.server_info import ServerFacts
from penstock.source.slot import SlotFacts

READER = "penstock_reader"
CAPTURE = "penstock_capture"
_OLDEST = 14
# pgoutput called through SQL functions can crash the server below these (a use after free, fixed in November 2025)
_LEAST_MINOR = {14: 20, 15: 15, 16: 11, 17: 7, 18: 1}
_ORIGINS = _STANDBY = 16
_SCHEDULES_PER_TIMEOUT = 3
_LONG_SECONDS = 60
# measured: what capture's process holds for its largest row's text (docs/postgresql.md)
_ROW_FACTOR, _ROW_BASE_MIB, _ROW_TEXT_MIB = 3.5, 260, 1024


def version(asked: Asked) -> Iterator[Note]:
    """Check that the server's version is one that we know."""
    server = asked.server
    least = _LEAST_MINOR.get(server.major)
    if server.major < _OLDEST:
        yield note("version-old")
    elif least is None:
        yield note("version-new")
    elif server.version_num % 10_000 < least:
        yield note("version-crashes", least=least)
    else:
        yield note("version")
    if server.in_recovery and server.major < _STANDBY:
        yield note("version-standby")


def settings(asked: Asked) -> Iterator[Note]:
    """Check that the WAL holds what decoding needs, and the other settings that decoding depends on."""
    server = asked.server
    yield note("wal-level" if server.wal_level == "logical" else "wal-level-low")
    if server.encoding == "SQL_ASCII":
        yield note("encoding")
    if server.output_plugins is not None and "pgoutput" not in server.output_plugins:
        yield note("plugin")
    if asked.pipeline.source.origin == "none" and server.major < _ORIGINS:
        yield note("origin-none")
    if server.temp_file_limit is not None:
        yield note("temp-files")


def wal_keep_size(asked: Asked) -> Iterator[Note]:
    """Check that a forgotten slot cannot fill the disk, and that a living one is not lost between two captures."""
    limit = asked.server.max_slot_wal_keep_size
    if limit is None:
        yield note("wal-unlimited")
    else:
        yield note("wal-tight" if limit < 2 * asked.pipeline.capture.max_wal_bytes else "wal-limit")


def idle_timeout(asked: Asked) -> Iterator[Note]:
    """Check that the server does not drop the slot's WAL between two captures: it is idle then (18+)."""
    timeout, schedule = asked.server.idle_slot_timeout, asked.schedule_seconds
    if not timeout:
        return
    if schedule is None:
        yield note("idle-low", level="warn", expected="several times the time between two captures")
    elif timeout <= schedule:
        yield note("idle-low", level="error", expected=f"more than capture's schedule of {schedule} s")
    elif timeout < _SCHEDULES_PER_TIMEOUT * schedule:
        expected = f"{_SCHEDULES_PER_TIMEOUT} times capture's schedule of {schedule} s"
        yield note("idle-low", level="warn", expected=expected)
    else:
        yield note("idle")


def role(asked: Asked) -> Iterator[Note]:
    """Check that the role may decode, and that a WAL sender is free where a slot has to be made."""
    yield note("role" if asked.role.replication else "role-poor")
    if asked.own is None and asked.role.senders >= asked.server.max_wal_senders:
        yield note("senders")


def reader(asked: Asked) -> Iterator[Note]:
    """Check that tables are read by a role that may do nothing else."""
    found, role = asked.reader, asked.role
    if found is None:
        schemas = {table.schema for table in asked.tables}
        schemas |= {leaf.schema for table in asked.tables for leaf in table.leaves}
        yield note("reader-none", statements=" ".join(reader_statements(role.database, schemas)))
        return
    if (found.database, found.started) != (role.database, role.started):
        yield note("reader-elsewhere")
    owned = [quoted(each.schema, each.name) for each in asked.reads if each.owned]
    if found.name == role.name:
        yield note("reader-same")
    elif beyond := found.beyond or [f"it has the rights of the owner of {each}" for each in owned[:1]]:
        yield note("reader-mighty", beyond=beyond)
    else:
        yield note("reader")


def unpinned(asked: Asked) -> Iterator[Note]:
    """Name the settings of our sessions that are not what they have to be, and that we may not set."""
    for role_name, setting, got in asked.unpinned:
        wanted, why = WANTED[setting]
        if not re.fullmatch(wanted, got):
            better = "C" if setting == "lc_messages" else wanted
            yield note("setting", setting=setting, why=why, got=got, role_name=role_name, wanted=better)


def slots(asked: Asked) -> Iterator[Note]:
    """Check that the server has a free slot, unless the pipeline's exists."""
    is_full = asked.own is None and len(asked.slots) >= asked.server.max_replication_slots
    yield note("slots-full" if is_full else "slots", taken=len(asked.slots))


def slot(asked: Asked) -> Iterator[Note]:
    """Check the pipeline's slot, if it exists."""
    if asked.own is None:
        yield note("slot-absent")
    else:
        yield from list(_slot_problems(asked.own, asked)) or [note("slot")]


def _slot_problems(own: SlotFacts, asked: Asked) -> Iterator[Note]:
    if not (asked.own_slot or asked.pipeline.source.adopt):
        yield note("slot-foreign")
    if own.invalidation is not None:
        yield note("slot-lost")
    if unusable := list(_unusable(own, asked.server)):
        yield note("slot-unusable", unusable=unusable)
    if own.active:
        yield note("slot-taken")


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


def blockers(asked: Asked) -> Iterator[Note]:
    """Name the open transactions that slot creation would wait for: prepared ones and long ones."""
    long = [
        each.describe()
        for each in asked.blockers
        if each.prepared is not None or each.age_seconds is None or each.age_seconds >= _LONG_SECONDS
    ]
    if long and asked.own is None:
        yield note("blockers", seconds=_LONG_SECONDS, open="; ".join(long))


def large_rows(_: Asked) -> Iterator[Note]:
    """Say what memory a large row needs: no view shows how large a table's largest row is."""
    most = (_ROW_FACTOR * _ROW_TEXT_MIB + _ROW_BASE_MIB) / 1024
    yield note("large-rows", factor=_ROW_FACTOR, base=_ROW_BASE_MIB, most=most)


def ddl_trigger(asked: Asked) -> Iterator[Note]:
    """Check that the event trigger is there, where the pipeline asks for it: without it more changes cost a copy."""
    if asked.ddl_trigger is not None:
        yield note("trigger" if asked.ddl_trigger.problem is None else "trigger-missing")


def capture_statements(database: str) -> list[str]:
    """Return the statements that make the role that decodes."""
    name = quoted(CAPTURE)
    return [
        f"create role {name} login replication;",
        f"grant connect on database {quoted(database)} to {name};",
        f"grant pg_monitor to {name};",
    ]


def reader_statements(database: str, schemas: Iterable[str]) -> list[str]:
    """Return the statements that make the role that reads the tables of these schemas."""
    name, listed = quoted(READER), _listed(schemas)
    granted = [
        f"grant usage on schema {listed} to {name};",
        f"grant select on all tables in schema {listed} to {name};",
    ]
    return [
        f"create role {name} login;",
        f"grant connect on database {quoted(database)} to {name};",
        *(granted if listed else ()),
    ]


def later_statement(schemas: Iterable[str]) -> str:
    """Return the statement by which an owner lets the reader read tables that he makes later."""
    return f"alter default privileges in schema {_listed(schemas)} grant select on tables to {quoted(READER)};"


def _listed(schemas: Iterable[str]) -> str:
    return names(map(quoted, sorted(set(schemas))))

"""All that a preflight can find, in one table: how bad it is, of which kind, what it is about, what is said, and the next step.

The rules say which of these it is, and give values that are not among what was asked (`Asked`). `{pipeline.slot}` is a value or
such an answer; `:names` lists names, `:quoted` quotes a name as SQL does, `:mib` shows bytes. An error forbids a bootstrap.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Any, Literal, cast

from psycopg import sql

from penstock.source.preflight.asked import Asked

Level = Literal["ok", "warn", "error"]

_FINDINGS = """
# the server
version-old error version
  expected PostgreSQL 14 to 18, got {server.version}
  upgrade the server
version-new warn version
  expected PostgreSQL 14 to 18, got {server.version}, which was not tested
  try it on a copy of the database first
version-crashes warn version
  expected at least {server.major}.{least}, got {server.version}: decoding through SQL can crash it
  install the newest minor version
version ok version
  PostgreSQL {server.version}
version-standby error version
  expected PostgreSQL 16 or newer on a standby
  connect to the primary
wal-level-low error wal_level
  expected logical, got {server.wal_level}
  run: alter system set wal_level = 'logical'; then restart the server
wal-level ok wal_level
  logical
encoding error server_encoding
  expected an encoding, got SQL_ASCII: texts may be anything and could not be read as UTF-8
  dump the database and restore it into one with encoding UTF8
plugin error output_plugin_libraries
  expected pgoutput in it
  add pgoutput to the setting and reload
origin-none error source.origin
  expected PostgreSQL 16 or newer for origin: none, got {server.version}
  name the origins in source.skip_origins instead
temp-files warn temp_file_limit
  expected no limit, got {server.temp_file_limit:mib}: a window that decodes to more is refused
  raise it for the role, or lower capture.max_wal_bytes
wal-unlimited warn max_slot_wal_keep_size
  expected a limit, got none: a slot without a reader fills the disk
  set it well below the free space of the WAL's disk; beyond it the slot is lost, and the server lives
wal-tight warn(slot-lost) max_slot_wal_keep_size
  expected at least two windows of capture.max_wal_bytes ({pipeline.capture.max_wal_bytes:mib} each), \
got {server.max_slot_wal_keep_size:mib}: the slot may be lost before capture runs again
  raise it, and reload the server's settings
wal-limit ok max_slot_wal_keep_size
  {server.max_slot_wal_keep_size:mib}
idle-low {level}(slot-lost) idle_replication_slot_timeout
  expected {expected}, got {server.idle_slot_timeout} s: the server drops the WAL of a slot that idles longer
  raise it, or let capture run more often
idle ok idle_replication_slot_timeout
  {server.idle_slot_timeout} s, capture runs every {schedule_seconds} s
large-rows ok large rows
  capture holds one large row at a time, in {factor} times its text and {base} MiB (a bytea's text is twice its bytes), \
so {most:.1f} GiB at most: PostgreSQL sends no row with more than 1 GiB of text
trigger ok ddl_trigger
  event trigger of version {ddl_trigger.version} is installed
trigger-missing warn(ddl-trigger-missing) ddl_trigger
  expected the event trigger that source.ddl_trigger asks for, but {ddl_trigger.problem}
  a superuser runs what `penstock ddl-trigger {pipeline.name}` prints; docs/runbooks/ddl-trigger-missing.md
# roles
role ok role
  {role.name:quoted} may replicate
role-poor error(source-auth) role
  expected role {role.name:quoted} to have the REPLICATION attribute
  run: alter role {role.name:quoted} replication (on a managed service: grant its replication role)
senders error max_wal_senders
  expected a free WAL sender to make the slot with, got {role.senders} of {server.max_wal_senders} taken
  raise max_wal_senders and restart the server
reader-none warn source.reader_connection
  expected a role that reads tables and may do nothing else, got none: functions that their owners put into indexes \
run as {role.name:quoted}
  as a superuser run: {statements} Then set a password, and name its connection as source.reader_connection
reader-elsewhere error source.reader_connection
  expected it to lead to the database of source.connection, {role.database} on the server that started at {role.started}, \
got {reader.database} on one that started at {reader.started}
  lead both connections to the same database of the same running server
reader-same warn source.reader_connection
  expected another role than {role.name:quoted}, got the same
  make a role for it
reader-mighty warn source.reader_connection
  expected role {reader.name:quoted} to have SELECT and nothing else, but {beyond:names}: functions of tables' owners run with that
  take it from the role: alter role {reader.name:quoted} nosuperuser noreplication nocreaterole nocreatedb; or make another role
reader ok source.reader_connection
  {reader.name:quoted} reads tables, and may do nothing else
setting warn {setting}
  expected {why}, got {got!r} for role {role_name:quoted}
  as a superuser run: alter role {role_name:quoted} in database {role.database:quoted} set {setting} = '{wanted}';
schemas error(source-auth) privileges
  expected USAGE on the schemas {lacking:names}
  run: grant usage on schema {lacking:names} to {who:quoted}
unreadable error(source-auth) privileges
  expected SELECT on {lacking:names}
  run: grant select on {lacking:names} to {who:quoted}
narrowed error(source-auth) row-level security
  expected to read every row, but policies would hide rows of {lacking:names}: the stream shows them all, so the copy must too
  run: alter role {who:quoted} bypassrls; or exclude the tables
privileges ok privileges
  may read all {heaps} heaps to copy
# the slot
slots-full error(no-free-slot) max_replication_slots
  expected a free replication slot, got {taken} of {server.max_replication_slots} slots taken
  drop a slot without a reader, or raise max_replication_slots and restart the server
slots ok max_replication_slots
  {taken} of {server.max_replication_slots} slots taken
slot-absent ok slot {pipeline.slot}
  does not exist, bootstrap will make it
slot ok slot {pipeline.slot}
  confirmed up to {own.confirmed}
slot-foreign error(slot-exists) slot {pipeline.slot}
  expected no slot of this name, but there is one
  drop it if it is not needed, set source.adopt: true to take it over, or choose another source.slot
slot-lost error(slot-lost) slot {pipeline.slot}
  expected a slot that can be read, got one that the server has invalidated ({own.invalidation})
  drop it; its changes are gone, so the tables must be copied again
slot-unusable error(slot-unusable) slot {pipeline.slot}
  expected a permanent pgoutput slot of database {server.database:quoted} without two_phase, got {unusable:names}
  drop it and let bootstrap make one
slot-taken warn(slot-in-use) slot {pipeline.slot}
  expected no reader at the slot, got process {own.active_pid}
  find out who owns the process
blockers warn(slot-creation-blocked) open transactions
  expected none that is prepared or older than {seconds} s, got: {open}
  end them before bootstrap: the slot cannot be made while they are open
# the patterns and the publication
unmatched error(no-matching-tables) tables.include
  {problem}
  correct the patterns, or the connection
nothing-chosen warn(no-matching-tables) tables.include
  expected tables, but database {server.database} has none yet that is chosen; each joins when it is made
  nothing to do if that is the right database
exclude-idle warn(no-matching-tables) tables.exclude
  expected every pattern to match something, got nothing for {choice.unmatched_exclude:names}
  a misspelt exclusion lets a table through: correct or remove it
inseparable error tables.exclude
  expected to exclude whole tables, got partitions of a chosen one: {parts:names}; their rows come with the partitioned table
  exclude the partitioned table, and include the partitions that are wanted
left-out warn tables.include
  expected tables whose changes are in the WAL; left out, each {reason}: {left_out:names}
  nothing to do if they are not wanted; else make them ordinary logged tables
publication-foreign error publication {pipeline.publication}
  expected none of this name, or one made for this pipeline, but there is another
  set source.adopt: true to take it over, or choose another source.publication
publication-on-standby error(publication-missing) publication {pipeline.publication}
  expected it to exist, because on a standby none can be made
  let the owner run on the primary: {statement}
publication-late error(publication-missing) publication {pipeline.publication}
  expected it to be older than slot {own.name}, but it does not exist
  drop the slot and let bootstrap make both; what the slot has not confirmed cannot be decoded
publication-absent ok publication {pipeline.publication}
  does not exist, bootstrap will make it for {tables_wanted}
publication-rights error(source-auth) publication {pipeline.publication}
  expected role {role.name:quoted} to be allowed to make it, but it lacks {lacking}
  let the owner run: {statement}
publication-young {level}(publication-missing) publication {pipeline.publication}
  expected it to be older than what the slot still has to read, but it was made or altered since: WAL from before the publication \
existed cannot be decoded
  if it was made after the slot, drop the slot and let bootstrap make one
members-follow warn(publication-differs) publication {pipeline.publication}
  expected it to publish exactly what tables.include chooses, but it differs by {late:names}
  nothing to do: the next capture lets them join or leave
members-missing error publication {pipeline.publication}
  expected it to publish what tables.include chooses, but it lacks {missing:names}
  narrow the patterns, or let the owner run: {statement}
members-extra warn publication {pipeline.publication}
  it publishes more than tables.include chooses, and that is mirrored too: {extra:names}
  widen the patterns, or let the owner drop them from the publication
members ok publication {pipeline.publication}
  publishes what is chosen: {members}
kinds-missing warn publication {pipeline.publication}
  expected every kind of change that source.publish names, but it does not publish {kinds:names}: the lake will not show them
  let the owner widen it; or, if it is meant to be so, name in source.publish what it publishes; docs/runbooks/publication-narrow.md
kinds-more warn publication {pipeline.publication}
  expected only what source.publish names, but it publishes {kinds:names} besides, which is merged as well
  add them to source.publish, or let the owner narrow the publication
kinds-few ok publication {pipeline.publication}
  publishes {pipeline.source.publish:names} only, as source.publish says: the lake shows nothing else
all-tables warn publication {pipeline.publication}
  expected a list of tables, got FOR ALL TABLES: any new table without a key refuses the application's updates from its first day
  publish a list of tables instead
via-leaves error publication {pipeline.publication}
  expected publish_via_partition_root = true for the partitioned tables {roots:names}
  let the owner run: alter publication {pipeline.publication:quoted} set (publish_via_partition_root = true)
origins ok {key}
  no subscription of this database fills one of the tables, and the server has no other origin
origins-lost warn {key}
  expected no table to have rows that another server wrote: a copy takes them, and their later changes are left out, so the lake \
keeps them as they are now; {writers:names}
  exclude these tables, give them a row filter that leaves such rows out, or let their changes through
# the tables
not-joining warn({kind}) {table}
  it matches tables.include and does not join the publication, because {why}
  {step}; or exclude it
updates-refused error(no-usable-identity) {table}
  expected it to take the application's updates and deletes, but they {now} once it is published: {why}
  {step}; or exclude it
identity-strange error(no-usable-identity) {table}
  expected a replica identity that can be read, but {why}: old rows would be misread
  {step}; or exclude it
key-of-names error(no-usable-identity) {table}
  expected the columns that tell rows apart to say the same of a row at any time, but {why}
  {step}; or exclude it
names-of-objects warn(text-not-stored) {table}
  it has {columns}: {lost}
  nothing to do if that is enough; else run: {statement}
array-deep warn {table}
  column {column.name} is an array of {column.dimensions} dimensions, and an array of the lake has one: a value of more than one will \
be NULL there, and a text in _misfits
  nothing to do if that is enough; else choose text for it in the pipeline file by an entry of tables.columns: {entry}
no-such-array error(config-invalid) tables.columns[{number}]
  expected columns of arrays, which alone can be had as another type, got no such column {columns:names} in {where}
  name columns of arrays, or take the entry away
reserved-column error(target-clash) {table}
  expected no column {clash}: the lake's tables keep that name for a column of their own
  rename the column, or leave it out by a column list of the publication
hidden-columns warn {table}
  these columns are generated or not published, and will not be in the lake: {hidden:names}
  nothing to do if they are not wanted
late-key warn {table}
  its primary key is deferrable{where}, so its rows are told by all of their values: merges read all columns of its files, and samples \
of verify leave it out
  nothing to do if it is small; else give it a key that is not deferrable, or an identity index
row-filter warn {table}
  only rows that pass the publication's row filter will be in the lake
  nothing to do if that is meant
silent-partitions warn {table}
  rows of these partitions are not in the WAL and will not be in the lake: {silent:names}{alone}
  nothing to do if they are not wanted; else make them ordinary logged tables
target-clash error(target-clash) {target}
  expected one source table per target, got {claimed:names}
  change lake.target so that their names differ, or exclude one (from changelog.tables, if it is a changelog)
partitions warn partitions
  nobody has chosen what follows in the lake when a partition of {found:names} is dropped or detached: the table is copied again
  set lake.on_dropped_partition to follow, and the rows of such a partition go from the lake, or to keep, and they stay there: then \
the lake is the archive, and the only place that has them
"""
_ROW = re.compile(r"(\S+) ([a-z]+|{level})(?:\((.+?)\))? (.+)\n  (.+)(?:\n  (.+))?")
TEXTS = {name: texts for name, *texts in _ROW.findall(_FINDINGS)}
"""By name: level, slug, subject, message and next step."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Say how one expectation stands; `slug` is the kind of error that it would be, and names its runbook.

    `subject` is what was looked at, `message` says what was expected and what came. An error forbids a bootstrap.
    """

    level: Level
    slug: str
    subject: str
    message: str
    next_step: str | None = None


Note = tuple[str, Mapping[str, object]]
"""What a rule has found: the name of a finding, with the values that its texts need."""


def note(name: str, /, **values: object) -> Note:
    """Name a finding of the table."""
    return name, values


def in_words(found: Note, asked: Asked) -> Finding:
    """Return what a rule has found in words."""
    name, values = found
    level, slug, subject, message, step = (_Words(asked).vformat(text, (), values) for text in TEXTS[name])
    return Finding(cast(Level, level), slug or "preflight-failed", subject, message, step or None)


def names(found: Iterable[str]) -> str:
    """List names in a message."""
    return ", ".join(found)


def quoted(*name: str) -> str:
    """Quote a name as an identifier of SQL."""
    return sql.Identifier(*name).as_string(None)


class _Words(Formatter):
    """Fill in a text of the table from a finding's values, and from what was asked."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked

    def get_value(self, key: int | str, _: Sequence[Any], values: Mapping[str, Any]) -> Any:
        name = str(key)
        return values[name] if name in values else getattr(self._asked, name)

    def format_field(self, value: Any, spec: str) -> str:
        shown: dict[str, Callable[[Any], str]] = {
            "names": names,
            "quoted": quoted,
            "mib": lambda size: f"{size >> 20} MiB",
        }
        return shown[spec](value) if spec in shown else str(super().format_field(value, spec))

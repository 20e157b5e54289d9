"""What the servers of versions 14 to 18 complain about, and which kind of error each complaint is.

The SQLSTATE decides, with the English text where one SQLSTATE stands for several things; the first rule that
matches wins. Source: PostgreSQL documentation, "PostgreSQL Error Codes", and the messages of each version.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """Say which slug an error gets: the first rule whose patterns match its SQLSTATE and its message."""

    slug: str
    states: str
    text: str
    expected: str
    next_step: str
    speakable: bool = False  # its text quotes nothing but names, whatever the class of its SQLSTATE


RULES = (
    Rule(
        "source-auth",
        "28...",
        "",
        "to accept the login",
        "check login and password in the connection, and pg_hba.conf on the server",
    ),
    Rule(
        "source-auth",
        "",
        "password authentication failed|no password supplied|no pg_hba.conf entry"
        "|role .+ does not exist|not permitted to log in",
        "to accept the login",
        "check login and password in the connection, and pg_hba.conf on the server",
    ),
    Rule(
        "source-auth",
        "",
        "must be superuser or replication role|permission denied to start WAL sender",
        "to let the role open a replication connection",
        "run: alter role ... replication (on a managed service: grant its replication role)",
    ),
    Rule(
        "source-auth",
        "3D000|",
        "^database .+ does not exist|permission denied for database",
        "to have the database and let the role in",
        "check the database's name in the connection and the role's CONNECT privilege",
    ),
    Rule(
        "preflight-failed",
        "42501",
        "may not be used as an output plugin",
        "to let a replication role decode with pgoutput",
        "add pgoutput to output_plugin_libraries on the server, and reload its configuration",
    ),
    Rule(
        "source-auth",
        "42501",
        "",
        "to grant what this takes",
        "grant the role the privilege; `penstock check` lists all that are missing",
    ),
    Rule(
        "slot-missing",
        "42704",
        "replication slot",
        "to have the replication slot",
        "if it was dropped, its changes are gone: copy the tables again",
    ),
    Rule(
        "snapshot-gone",
        "42704|22023|55000",
        "snapshot",
        "to still have the exported snapshot",
        "run again: finished tables stay, the others are copied under a snapshot of their own",
        speakable=True,
    ),
    Rule(
        "publication-missing",
        "42704",
        "publication",
        "to have the publication at every position of the WAL that is read",
        "it was dropped, or made after the slot: changes cannot be decoded; copy the tables again",
    ),
    Rule("slot-exists", "42710", "replication slot", "to have no slot of this name", "choose another, or adopt it"),
    Rule(
        "slot-in-use",
        "55006",
        "",
        "to find no other session at the slot",
        "wait for the other session, or end it if it is a left-over",
    ),
    Rule(
        "source-error",
        "58P01",
        r"\.spill|\.snap",
        "to have the files into which it decodes",
        "run again: decoding starts over and writes them again; if it comes back, look for what deletes in pg_replslot",
    ),
    Rule(
        "slot-lost",
        "55000|58P01",
        "can no longer (get changes|access)|invalidated|cannot be advanced|WAL segment .* removed",
        "to still have the WAL that the slot needs",
        "the slot cannot be read again: drop it, make a new one and copy the tables again",
    ),
    Rule(
        "slot-ahead",
        "55000",
        "cannot advance replication slot",
        "to have the slot at or before the position to confirm",
        "another session consumed changes of the slot: recover by copying the tables again",
    ),
    Rule(
        "slot-unusable",
        "55000|0A000",
        "not created in this database|cannot use (physical )?replication slot|cannot use .+ with a physical",
        "to have a logical slot of this database that is no synced copy",
        "a slot that a standby keeps in sync is read on its primary; else choose another name for the slot",
    ),
    Rule(
        "preflight-failed",
        "0A000",
        "while in recovery",
        "to decode on a standby",
        "that takes PostgreSQL 16: lead the connection to the primary",
    ),
    Rule(
        "preflight-failed",
        "55000",
        "wal_level",
        "to have wal_level = logical",
        "set it in postgresql.conf (on a standby: on the primary) and restart the server",
    ),
    Rule(
        "no-free-slot",
        "53400",
        "replication slots are in use",
        "to have a free replication slot",
        "drop a slot without a reader, or raise max_replication_slots and restart the server",
    ),
    Rule(
        "decoding-limit",
        "53400",
        "temporary file size",
        "to have room for what it decodes",
        "raise temp_file_limit for the role, or lower capture.max_wal_bytes",
    ),
    Rule(
        "no-free-slot",
        "53300",
        "max_wal_senders|standby connections",
        "to have a free WAL sender",
        "wait for another copy or base backup, or raise max_wal_senders and restart the server",
    ),
    Rule(
        "source-error",
        "25001",
        "performed writes",
        "to be outside of any transaction",
        "connect to the server itself: a pooler between us keeps transactions open",
    ),
    Rule(
        "decoding-limit",
        "XX000|54000",
        "invalid memory alloc|too much output for sql interface",
        "to be able to hand over each row in one piece",
        "one row is larger than a message may be: see what penstock skip-transaction says",
    ),
    Rule(
        "decoding-limit",
        "54000",
        "out of memory|string buffer exceeds",
        "to be able to hand over each row in one piece",
        "one row is larger than a message may be: see what penstock skip-transaction says",
    ),
    Rule(
        "source-out-of-memory",
        "53200|XX000|54001",
        "out of memory|stack depth limit",
        "to have the memory that this takes",
        "lower capture.work_mem or capture.max_wal_bytes, or give the server more memory, then run again",
    ),
    Rule(
        "source-corrupt",
        "XX001|XX002|58030",
        "",
        "to find its own files whole",
        "call the server's owner at once; read on from a sound copy of the server, and copy the tables again",
    ),
    Rule(
        "source-corrupt",
        "XX000|58P01",
        r"invalid page in block|could not read block|(missing|unexpected) (toast )?chunk"
        r'|could not open file "(base|global|pg_tblspc|pg_xact|pg_multixact)/|could not access status of transaction',
        "to find its own files whole",
        "call the server's owner at once; read on from a sound copy of the server, and copy the tables again",
    ),
    Rule(  # what the reader of the WAL says: by itself (14), or after "could not find record ..." (15 and later)
        "source-corrupt",
        "XX000",
        "could not find (a valid )?record|could not find logical decoding starting point|resource manager (data checksum|ID)"
        "|incorrect prev-link|contrecord|(record|block_id|info bits|magic number|pageaddr) .*at [0-9A-F]+/[0-9A-F]+"
        "|in (WAL|log) segment",
        "to find its own WAL whole",
        "call the server's owner at once; read on from a sound copy of the server, and copy the tables again",
    ),
    Rule(
        "source-disk-full",
        "53100",
        "",
        "to have room on its disk",
        "free space on the source at once: if WAL fills it, see `penstock health` for who keeps it",
    ),
    Rule(
        "recovery-conflict",
        "40001|40P01|57P0.",
        "conflict with recovery",
        "to let us read on while it replays",
        "run again; if it comes back, raise max_standby_streaming_delay or read from the primary",
    ),
    Rule(
        "source-timeout",
        "57014",
        "",
        "to answer within statement_timeout",
        "run again; raise the time limit if the work is only large",
    ),
    Rule(
        "source-timeout",
        "55P03",
        "",
        "to grant a lock within lock_timeout",
        "run again when the session that holds the lock has ended",
    ),
    Rule(
        "source-unreachable",
        "08...|53300|57P0.|25P0[34]",
        "",
        "to accept the connection and keep it",
        "run again when the server is up and has room for connections",
    ),
)
UNREACHABLE = Rule(
    "source-unreachable",
    "",
    "",
    "to accept the connection and keep it",
    "check host and port in the connection, the network, and that the server is up",
)
OTHER = Rule(
    "source-error", "", "", "to carry out a statement", "read the server's log for the whole message, then run again"
)

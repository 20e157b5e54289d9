"""Somebody who may connect to the source and nothing else, and writes logical messages while everything else goes on.

He knows what everybody can read in the catalog, and what somebody with REPLICATION has shown him: genuine messages, to be sent again
whole, cut or changed. Nothing of his may stop the pipeline, or have it believe him: the judge is the same as without him.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg.rows import dict_row

from penstock.shapes.ddl_message import PREFIX, VERSION
from penstock.sql import load
from penstock.wire.messages import LogicalMessage
from penstock.wire.pgoutput import Decoder
from stack.servers.postgres import Database
from torture.model import Table
from torture.writers import Note, failure

ROLE = "stranger"
KEPT = 200
_STATE = """
select c.oid::bigint, c.relfilenode::bigint as file, c.relnatts::int as count, c.relpersistence = 'u' as unlogged,
  json_build_array(c.xmin::text::bigint, c.cmin::text::bigint) as written, ({token}) as trigger,
  pg_snapshot_xmax(pg_current_snapshot())::text as xid,
  (select coalesce(json_agg(json_build_array(attnum, attname, atttypid::bigint, atttypmod, xmin::text::bigint) order by attnum), '[]')
    from pg_attribute where attrelid = c.oid and attnum > 0 and not attisdropped) as columns,
  (select coalesce(json_agg(json_build_array(attnum, xmin::text::bigint) order by attnum), '[]')
    from pg_attribute where attrelid = c.oid and attnum > 0 and attisdropped) as dropped
from pg_class c where c.oid = to_regclass(%s)
"""
BROKEN = [
    b"",
    b"{",
    b"[" * 50_000,
    b'{"version":5,"oid":1e400}',
    b'{"version":5,"count":400000000}',
    b"\xff" * 99,
    b"null",
    b"0",
]


@dataclass
class Stranger:
    """Write messages as a role that may only connect; `slot` is where its friend reads those of others."""

    database: Database
    note: Note
    slot: str
    publication: str
    seen: list[bytes] = field(default_factory=list)
    conn: psycopg.Connection[Any] | None = None

    def step(self, dice: random.Random, tables: list[Table]) -> str:
        """Do one thing, and return its name."""
        chosen: Callable[[random.Random, list[Table]], list[bytes]] = dice.choices(
            [self.forged, self.genuine, self.broken, self.huge, self.flood], weights=[8, 8, 4, 1, 1]
        )[0]
        try:
            contents = chosen(dice, tables)
            conn, within = self._connected(), dice.random() < 0.3
            if within:  # several in one transaction
                conn.execute("begin")
            for content in contents:
                prefix = PREFIX if dice.random() < 0.9 else dice.choice(["", "x" * 5000, f"{PREFIX} ", "Penstock.ddl"])
                sent = (dice.random() < 0.85, prefix, content)
                conn.execute("select pg_logical_emit_message(%s, %s, %s::bytea)", sent)
            if within:
                conn.execute(dice.choice(["commit", "commit", "rollback"]).encode())
            if dice.random() < 0.1:  # and hold whatever lock he can think of
                conn.execute("select pg_try_advisory_lock(hashtextextended(%s, 0))", (self.slot,))
            self.note(ROLE, f"{chosen.__name__}: {len(contents)} messages, {sum(map(len, contents))} bytes", "")
        except psycopg.Error as error:
            self.note(ROLE, chosen.__name__, failure(error))
            self.close()
        return chosen.__name__

    def forged(self, dice: random.Random, tables: list[Table]) -> list[bytes]:
        """Say of a table what everybody can see of it, and that a plain command left it so: as it is, or as it was once."""
        text, conn = _STATE.format(token=load("source/ddl_trigger/token") + "\n").encode(), self._connected()
        state = (
            conn.cursor(row_factory=dict_row).execute(text, (dice.choice(tables).sql,)).fetchone() if tables else None
        )
        if state is not None:
            self._keep(json.dumps({"version": VERSION, **state, "plain": True}).encode())
        return [dice.randbytes(40) + self._body(dice.choice(self.seen))] if self.seen else []

    def genuine(self, dice: random.Random, _: list[Table]) -> list[bytes]:
        """Send again what the trigger wrote: whole, more than once, cut, or with one bit changed."""
        with suppress(psycopg.Error):  # a capture reads the slot
            rows = self.database.execute(
                f"select data from pg_logical_slot_peek_binary_changes('{self.slot}', null, 2000, 'proto_version', '1', "
                f"'publication_names', '{self.publication}', 'messages', 'true') where get_byte(data, 0) in (66, 77, 67)"
            )
            decoder = Decoder()
            for message in (decoder.decode(data) for (data,) in rows):
                if isinstance(message, LogicalMessage) and message.prefix == PREFIX and len(message.content) < 1 << 20:
                    self._keep(message.content)
        if not self.seen:
            return []
        content = bytearray(dice.choice(self.seen))
        kind = dice.randrange(4)
        if kind == 0 and content:
            content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
        if kind == 1:
            del content[dice.randrange(len(content) + 1) :]
        return [bytes(content)] * dice.choice([1, 1, 2])

    def broken(self, dice: random.Random, _: list[Table]) -> list[bytes]:
        """Send what is of no form."""
        return [dice.choice([b"", bytes(40)]) + dice.choice(BROKEN)]

    def huge(self, dice: random.Random, _: list[Table]) -> list[bytes]:
        """Send one message of some megabytes."""
        return [bytes(dice.choice([1 << 20, (1 << 20) + 41, 20 << 20]))]

    def flood(self, dice: random.Random, _: list[Table]) -> list[bytes]:
        """Send many."""
        return [dice.choice([*self.seen, *BROKEN])[:5000] for _ in range(500)]

    def close(self) -> None:
        """Leave the server."""
        if self.conn is not None:
            self.conn.close()
            self.conn = None
            self.database.execute(f"drop role if exists {ROLE}")

    def _connected(self) -> psycopg.Connection[Any]:
        if self.conn is None or self.conn.closed:
            self.database.execute(
                f"do $$ begin if to_regrole('{ROLE}') is null then create role {ROLE}; end if; end $$"
            )
            self.conn = self.database.connect()
            self.conn.execute(f"set session authorization {ROLE}".encode())
        return self.conn

    def _keep(self, content: bytes) -> None:
        self.seen = [*self.seen, content][-KEPT:]

    @staticmethod
    def _body(content: bytes) -> bytes:
        return content if content[:1] == b"{" else content[40:]

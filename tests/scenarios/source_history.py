"""The source's own history, read from a second slot by the scalar decoder: what the changelogs are held against.

It shares neither the pipeline's slot nor its windows, files, casts or SQL; values are texts of the server.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from penstock.lsn import Lsn
from penstock.wire import messages as m
from penstock.wire.pgoutput import Decoder
from tests.pipeline_env import PipelineEnv

Image = dict[str, str | None] | None


@dataclass(frozen=True)
class Change:
    """One change of a table: its place, who made it when, and both images as texts; `unknown` columns were not sent."""

    oid: int
    table: str
    commit_lsn: int
    committed_at: datetime
    xid: int
    origin: str | None
    op: str
    new: Image
    old: Image
    old_kind: str | None
    unknown: list[str] | None


def watch(env: PipelineEnv, slot: str) -> None:
    """Make the second slot; it sees what commits from now on."""
    env.sql(f"select pg_create_logical_replication_slot('{slot}', 'pgoutput')")


def changes(env: PipelineEnv, slot: str, table: str | None = None) -> list[Change]:
    """Return the changes of a table, or of all, since `watch`, in the source's order."""
    found = env.sql(
        f"select data from pg_logical_slot_peek_binary_changes('{slot}', null, null, 'proto_version', '1', "
        f"'publication_names', '{env.ctx.pipeline.publication}')"
    )
    decoder = Decoder()
    return [
        change for change in _changes(decoder.decode(bytes(data)) for (data,) in found) if table in (None, change.table)
    ]


def _changes(messages: Iterable[m.Message]) -> Iterable[Change]:
    begin, origin = m.Begin(Lsn(0), 0, 0), None
    for message in messages:
        if isinstance(message, m.Begin):
            begin, origin = message, None
        elif isinstance(message, m.Origin):
            origin = message.name
        elif isinstance(message, m.Truncate):
            for relation in message.relations:
                yield _change(begin, origin, relation, "T")
        elif isinstance(message, m.Insert | m.Update | m.Delete):
            op = type(message).__name__[0]
            yield _change(
                begin, origin, message.relation, op, getattr(message, "new", None), getattr(message, "old", None)
            )


def _change(
    begin: m.Begin, origin: str | None, relation: m.Relation, op: str, new: Any = None, old: Any = None
) -> Change:
    names = [column.name for column in relation.columns]
    left_out = [name for name, cell in zip(names, new or (), strict=False) if cell is m.Missing.UNCHANGED]
    return Change(
        oid=relation.oid,
        table=relation.name,
        commit_lsn=int(begin.final_lsn),
        committed_at=_time(begin.commit_time),
        xid=begin.xid,
        origin=origin,
        op=op,
        new=_image(names, new),
        old=_image(names, old.cells) if old else None,
        old_kind={m.OldKey: "K", m.OldRow: "O", type(None): None}[type(old)],
        unknown=left_out or None,
    )


def _time(microseconds: int) -> datetime:
    """Return a time of the server, `infinity` as the calendar's last moment."""
    try:
        return datetime(2000, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def _image(names: list[str], cells: Any) -> Image:
    if cells is None:
        return None
    return {name: cell.value if isinstance(cell, m.Text) else None for name, cell in zip(names, cells, strict=True)}

"""Whether a partition's new file is that of one rewrite that was logged, with no TRUNCATE before it or after. Pure.

A TRUNCATE of a partition alone is in no message and gives it a new file, as a rewrite does. So the file that the rewrite found
has to be the known one, and the file that it left the present one. Within the transaction of the rewrite, though, a later TRUNCATE
keeps the file: that nothing was lost to one, the rows have to show, or that there were none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.wire.columnar import DdlEvent


@dataclass(frozen=True, slots=True)
class RewrittenFile:
    """Say which transaction rewrote a partition's file, and who wrote the rows of it.

    That is transaction `writer`, which may be a part of `xid`, by `command`. `empty`: there was no row to write.
    """

    xid: int
    writer: int
    command: int
    empty: bool


def rewritten_file(before: int, now: int, token: str | None, events: Sequence[DdlEvent]) -> RewrittenFile | None:
    """Return how a partition came from the file `before` to that of `now`, None where one plain rewrite is not logged to have done it.

    More than one such story is somebody's invention.
    """
    stories = [(each.rewrote, each.state) for each in events if each.rewrote and each.rewrote.file == before]
    if len(stories) != 1 or not token:
        return None
    ((start, end),) = stories
    one = start.xid == end.xid and {start.trigger, end.trigger} == {token} and end.plain
    return RewrittenFile(start.xid, *end.written, start.empty) if one and end.file == now else None


def rewritten_files(
    before: Mapping[int, int], now: Mapping[int, int], token: str | None, events: Mapping[int, Sequence[DdlEvent]]
) -> dict[int, RewrittenFile] | None:
    """Return how each partition with a new file came to it, by oid; None where the log does not say it of all. All are given by oid."""
    new = [oid for oid, file in now.items() if before[oid] != file]
    found = {oid: rewritten_file(before[oid], now[oid], token, events.get(oid, ())) for oid in new}
    sure = {oid: each for oid, each in found.items() if each is not None}
    return sure if len(sure) == len(found) else None

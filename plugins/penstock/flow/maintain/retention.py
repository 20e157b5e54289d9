"""How long the landing zone keeps what it has: the ledger forgets first, then whatever it does not know is deleted.

Folders are listed before the ledger is asked: work writes into the ledger first and into the zone afterwards, so
that a folder which was there and is unknown is an orphan, and no run at work can own it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from penstock.flow.context import Context
from penstock.landing import layout
from penstock.ledger.advisory_lock import made_before
from penstock.ledger.maintenance import Forgotten, Needed


@dataclass(frozen=True, slots=True)
class Released:
    """Report what the landing zone removed; bytes are those of windows and copies that were forgotten."""

    windows: int = 0
    copies: int = 0
    bytes: int = 0
    folders: int = 0
    files: int = 0


def release(ctx: Context) -> Released:
    """Forget what is older than `landing.retention`, then delete what belongs to nothing; raises LakeError."""
    now, retention = ctx.ledger.health.clock(), ctx.pipeline.landing.retention
    gone = (
        Forgotten()
        if retention is None
        else ctx.ledger.maintenance.forget_landed(ctx.name, before=now - _span(retention))
    )
    folders, files = sweep(ctx, now - _span(ctx.pipeline.maintain.orphans))
    return Released(
        windows=len(gone.windows),
        copies=len(gone.copies),
        bytes=sum(window.bytes for window in gone.windows) + sum(size for _, _, size in gone.copies),
        folders=folders,
        files=files,
    )


def outlook(ctx: Context) -> Released:
    """Say what `release` would forget, and change nothing."""
    retention = ctx.pipeline.landing.retention
    if retention is None:
        return Released()
    old = ctx.ledger.maintenance.old_windows(ctx.name, before=ctx.ledger.health.clock() - _span(retention))
    return Released(windows=len(old), bytes=sum(window.bytes for window in old))


def sweep(ctx: Context, runs_before: datetime) -> tuple[int, int]:
    """Delete the landing zone's folders and files that the ledger does not know; return how many of each.

    Plans and results of merges are kept while they are read, and as long as from `runs_before` on.
    """
    zone, name = ctx.landing, ctx.name
    windows = zone.folders(layout.windows_folder(name))
    copies = zone.folders(layout.copies_folder(name))
    runs = zone.folders(layout.runs_folder(name))
    parts = {folder: zone.list(folder) for folder in copies}
    needed = ctx.ledger.maintenance.needed_landed(name)
    known_copies = {copy.copy_id for copy in needed.copies if copy.copy_id is not None} | needed.fetches
    dead = [
        *_unknown(windows, (layout.range_folder(name, from_, upto) for from_, upto, _ in needed.windows)),
        *_unknown(copies, (layout.copy_folder(name, id) for id in known_copies)),
        *_unread(runs, needed, runs_before),
    ]
    files = [
        path for folder in copies if folder not in dead for path in _dead_files(ctx, needed, folder, parts[folder])
    ]
    for folder in dead:
        zone.delete_folder(folder)
    for path in files:
        zone.delete(path)
    return len(dead), len(files)


def _unknown(found: Iterable[str], known: Iterable[str]) -> list[str]:
    kept = set(known)
    return [folder for folder in found if folder not in kept]


def _unread(found: Iterable[str], needed: Needed, before: datetime) -> Iterator[str]:
    """Yield the folders of old attempts; what has another name is not ours."""
    for folder in found:
        attempt = folder.rpartition("/")[2]
        if attempt not in needed.runs and made_before(attempt, before):
            yield folder


def _dead_files(ctx: Context, needed: Needed, folder: str, paths: Iterable[str]) -> list[str]:
    """Return the files of a copy that belong to tables which have a newer one; one at work, or never finished, and a fetch keep all."""
    if any(layout.copy_folder(ctx.name, id) == folder for id in needed.fetches):
        return []
    tables = [copy for copy in needed.copies if layout.copy_folder(ctx.name, copy.copy_id or "") == folder]
    if any(copy.copied_at is None for copy in tables):
        return []
    known = {entry.path for copy in tables for entry in copy.files} | {f"{folder}/{copy.oid}.json" for copy in tables}
    return [path for path in paths if path not in known and path != f"{folder}/plan.json"]


def _span(seconds: int) -> timedelta:
    return timedelta(seconds=seconds)

"""The landing zone's retention over random histories: what anybody may still need is never deleted, and nothing else stays.

The model below remembers everything that was ever landed and says by itself, from the rules of merging and copying,
which files are still needed. Ledger and files are real.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from penstock.config.connections import Connection
from penstock.config.model import Pipeline
from penstock.contract.manifest import ChangeCounts, FileEntry
from penstock.errors import Trouble
from penstock.flow.context import Context
from penstock.flow.maintain import retention
from penstock.landing import layout
from penstock.ledger import Ledger, new_attempt
from penstock.ledger.loads import NewBuild
from penstock.ledger.merge_queue import PublishedTable
from penstock.ledger.merges import NewCut
from penstock.lsn import Lsn
from penstock.shapes.known_shape import KnownShape
from tests.ledger.conftest import (
    START,
    bootstrap,
    capture,
    copy_again,
    facts,
    plan,
    publish,
    publish_cut,
    stage,
    start_copy,
)

OIDS = (1, 2, 3)


@dataclass
class Landed:
    """One window as the model knows it."""

    from_lsn: int
    upto_lsn: int
    paths: dict[int, str]
    xid: int | None
    confirmed: bool = False


@dataclass
class Copied:
    """One table's copy: what its snapshot has not seen begins with `xid`."""

    id: str
    oid: int
    xid: int
    path: str
    state: str = "copying"


@dataclass
class Model:
    """Do random things to a pipeline, and remember them."""

    ctx: Context
    chance: random.Random
    position: int = START
    xid: int = 700
    windows: list[Landed] = field(default_factory=list)
    copies: dict[int, Copied] = field(default_factory=dict)  # the newest of each table
    through: dict[int, int] = field(default_factory=dict)
    paused: set[int] = field(default_factory=set)
    rebuilds: dict[int, tuple[str, Copied]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.ctx.name

    @property
    def ledger(self) -> Ledger:
        return self.ctx.ledger

    # --- what happens -------------------------------------------------------------------------------

    def capture(self, *, confirmed: bool = True) -> None:
        upto = self.position + 16
        attempt = plan(self.ledger, self.name, self.position, upto)
        folder = layout.window_folder(self.name, Lsn(self.position), Lsn(upto), attempt)
        touched = [oid for oid in OIDS if self.chance.random() < 0.5]
        paths = {oid: layout.window_file(folder, oid, 1) for oid in touched}
        self.xid += self.chance.randrange(3)
        for path in paths.values():
            self.ctx.landing.write_text(path, "rows")
        entries = [
            FileEntry(path, oid, 1, 1, 4, 1, 2, ("id",), ChangeCounts(inserts=1), max_xid=self.xid)
            for oid, path in paths.items()
        ]
        stage(self.ledger, self.name, self.position, attempt, files=entries)
        self.windows.append(Landed(self.position, upto, paths, self.xid if paths else None))
        self.position = upto
        if confirmed:
            self.ledger.windows.confirm(self.name, through=Lsn(upto))
            for window in self.windows:
                window.confirmed = True

    def capture_unconfirmed(self) -> None:
        self.capture(confirmed=False)

    def die_capturing(self) -> None:
        attempt = plan(self.ledger, self.name, self.position, self.position + 8)
        folder = layout.window_folder(self.name, Lsn(self.position), Lsn(self.position + 8), attempt)
        self.ctx.landing.write_text(layout.window_file(folder, 1, 1), "half")

    def merge(self) -> None:
        attempt = self.ledger.merges.begin(self.name)
        done = []
        for oid, copied in self.copies.items():
            if oid in self.paused or copied.state == "copying":
                continue
            done.append(PublishedTable(oid, load=copied.id if copied.state == "copied" else None))
            copied.state = "loaded"
            self.through[oid] = self.position
        publish_cut(self.ledger, self.name, NewCut(attempt, Lsn(self.position), done, cuts_snapshot_id=9))

    def copy(self) -> None:
        oid = self.chance.choice(OIDS)
        if oid in self.paused or oid in self.rebuilds:
            return
        copied = self._begin_copy(oid)
        snapshot = f"{copied.xid}:{copied.xid}:"
        start_copy(self.ledger, self.name, oid, copy_id=copied.id, snapshot=snapshot, lsn=Lsn(self.position))
        self.copies[oid] = copied
        self.through.pop(oid, None)
        if self.chance.random() < 0.7:
            self.ledger.loads.finish_copy(self.name, copy_id=copied.id, oid=oid, files=[self._entry(copied)])
            copied.state = "copied"

    def rebuild(self) -> None:
        oid = self.chance.choice(OIDS)
        if oid in self.rebuilds:
            id_, _ = self.rebuilds.pop(oid)
            (record,) = (each for each in self.ledger.loads.builds(self.name) if each.id == id_)
            self.ledger.loads.give_up(self.name, record, reason="x")
            return
        newest, id_ = self.copies.get(oid), new_attempt()
        kept = {copy.copy_id for copy in self.ledger.loads.copies(self.name, state="done")}
        if newest is not None and newest.state == "loaded" and newest.id in kept:
            order = NewBuild(id_, "replay", facts(oid, f"t{oid}"), ("ns", f"new{oid}"), copy_id=newest.id)
            self.ledger.loads.start(self.name, [order])
            self.rebuilds[oid] = (id_, newest)

    def pause(self) -> None:
        oid = self.chance.choice(OIDS)
        if oid in self.paused:
            self.paused.remove(oid)
            self.ledger.tables.resume(self.name, oid)
        else:
            self.paused.add(oid)
            self.ledger.tables.stop(self.name, {oid: Trouble.usual("divergence", "x")})

    def release(self) -> None:
        before = datetime.now(UTC) + timedelta(seconds=1)
        self.ledger.maintenance.forget_landed(self.name, before=before)
        if self.chance.random() < 0.3:
            return  # killed between forgetting and deleting
        retention.sweep(self.ctx, before)
        self.check(swept=True)

    def _begin_copy(self, oid: int) -> Copied:
        id_ = new_attempt()
        path = layout.copy_file(layout.copy_folder(self.name, id_), f"{oid}-00000")
        copied = Copied(id_, oid, max(700, self.xid - self.chance.randrange(3)), path)
        self.ctx.landing.write_text(path, "rows")
        return copied

    def _entry(self, copied: Copied) -> FileEntry:
        return FileEntry(copied.path, copied.oid, 0, 1, 4, 1, 2, ("id",), ChangeCounts(inserts=1))

    # --- what must hold -----------------------------------------------------------------------------

    def needed(self) -> Iterator[str]:
        """Yield every file that a merge, an unfinished copy, an open rebuild or the slot may still ask for."""
        waiting = [copied for copied in self.copies.values() if copied.state != "loaded"]
        waiting += [copied for _, copied in self.rebuilds.values()]
        for window in self.windows:
            late = {oid for oid, through in self.through.items() if window.upto_lsn > through}
            late |= {copied.oid for copied in waiting if window.xid is not None and window.xid >= copied.xid}
            yield from (path for oid, path in window.paths.items() if oid in late or not window.confirmed)
        yield from (copied.path for copied in waiting)

    def check(self, *, swept: bool = False) -> None:
        there = set(self.ctx.landing.list(self.name))
        assert not {*self.needed()} - there, "something that is needed was deleted"

        known = self.ledger.windows.all(self.name)
        copies = self.ledger.loads.copies(self.name)
        listed = {entry.path for each in (*known, *copies) for entry in each.files}
        assert not listed - there, "the ledger lists a file that is gone"
        done = [window for window in known if window.state != "planned"]
        assert all(a.upto_lsn == b.from_lsn for a, b in pairwise(done)), "a hole among the windows"

        replayable = {copied.copy_id for copied in copies if copied.state == "done"}
        for copied in self.copies.values():
            if copied.id in replayable:
                since = [window for window in self.windows if window.xid is not None and window.xid >= copied.xid]
                gone = {path for window in since for path in window.paths.values()} - there
                assert not gone, "a copy is kept that cannot be replayed"
        if swept:
            copying = {copied.path for copied in self.copies.values() if copied.state == "copying"}
            assert there <= listed | copying | self._of_planned(), "something that nobody needs is still there"

    def _of_planned(self) -> set[str]:
        planned = [window for window in self.ledger.windows.all(self.name) if window.state == "planned"]
        folders = [layout.window_folder(self.name, w.from_lsn, w.upto_lsn, w.attempt) for w in planned]
        return {path for folder in folders for path in self.ctx.landing.list(folder)}


def test_what_a_copy_that_was_given_up_has_written_stays_until_it_is_old(
    ledger: Ledger, ready: str, connection: Connection, tmp_path: Path
) -> None:
    pipeline = Pipeline.model_validate(
        {"name": ready, "tables": {"include": ["public.*"]}, "landing": {"uri": str(tmp_path)}}
    )
    ctx, id_ = Context(pipeline, lambda _: connection, tmp_path), new_attempt()
    rows = layout.copy_file(layout.copy_folder(ready, id_), "1-00000")
    order = NewBuild("r1", "resync", facts(1, "a"), ("ns", "new", "a"))
    copy_again(ledger, ready, order, copy_id=id_)
    (resync,) = ledger.loads.builds(ready)
    ctx.landing.write_text(rows, "half")
    ledger.loads.give_up(ready, resync, reason="x")

    assert retention.sweep(ctx, datetime.now(UTC)) == (0, 0)
    assert rows in ctx.landing.list(ready), "Spark may still be writing"

    gone = ledger.maintenance.forget_landed(ready, before=datetime.now(UTC) + timedelta(seconds=1))
    assert [copy_id for copy_id, _, _ in gone.copies] == [id_]
    retention.sweep(ctx, datetime.now(UTC))
    assert rows not in ctx.landing.list(ready)


@pytest.mark.parametrize("seed", range(12))
def test_what_is_needed_is_never_deleted_and_nothing_else_stays(
    connection: Connection, name: str, tmp_path: Path, seed: int
) -> None:
    pipeline = Pipeline.model_validate(
        {"name": name, "tables": {"include": ["public.*"]}, "landing": {"uri": str(tmp_path)}}
    )
    ctx = Context(pipeline, lambda _: connection, tmp_path)
    model = Model(ctx, random.Random(seed))
    doings = (
        [model.capture] * 6 + [model.merge] * 4 + [model.release] * 3 + [model.copy, model.pause, model.rebuild] * 2
    )
    doings += [model.capture_unconfirmed, model.die_capturing]
    with ctx.ledger.session():
        bootstrap(ctx.ledger, name)
        ctx.ledger.tables.save(name, [facts(oid, f"t{oid}") for oid in OIDS])
        for oid in OIDS:
            copied = model._begin_copy(oid)
            start_copy(ctx.ledger, name, oid, copy_id=copied.id, snapshot=f"{copied.xid}:{copied.xid}:")
            ctx.ledger.loads.finish_copy(name, copy_id=copied.id, oid=oid, files=[model._entry(copied)])
            copied.state = "copied"
            model.copies[oid] = copied
        for _ in range(40):
            model.chance.choice(doings)()
            model.check()
        model.chance = random.Random(2)  # whose first number does not kill the last release
        model.release()


def test_shapes_are_kept_from_the_newest_that_was_sure_at_the_oldest_landed_position(
    ledger: Ledger, ready: str
) -> None:
    known = KnownShape.of(facts(1, "a").accepted.shape)
    for at in range(4):
        ledger.shapes.note(ready, {1: replace(known, count=10 + at)}, seen_at=Lsn(START + at))
        capture(ledger, ready, START + at, START + at + 1, logged={1: replace(known, xid=at)}, missed=False)

    def counts() -> list[int]:
        return [each.count for each in ledger.shapes.histories(ready, [1], since=Lsn(START))[1].found]

    assert counts() == [10, 11, 12, 13]
    publish(ledger, ready, Lsn(START + 2), [PublishedTable(1), PublishedTable(2)])
    ledger.maintenance.forget_landed(ready, before=datetime.now(UTC) + timedelta(seconds=1))
    oldest = ledger.windows.all(ready)[0].from_lsn - START
    assert oldest > 0
    assert counts() == [10 + at for at in range(oldest, 4)]
    (history,) = ledger.shapes.histories(ready, [1], since=Lsn(START + 4)).values()
    assert history.before is not None
    assert history.before.xid == 3

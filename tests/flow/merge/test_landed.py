"""Which landed files a rebuild reads next: all that its copy may not have seen, up to its goal, a bounded share at a time."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from penstock.contract.manifest import ChangeCounts, FileEntry
from penstock.errors import ConfigError, LakeError
from penstock.flow.load.position import resolve_position
from penstock.flow.merge import table_plan as landed
from penstock.flow.merge.table_plan import Landed
from penstock.ledger.records import WindowRecord
from penstock.lsn import Lsn
from penstock.shapes.accepted import Accepted, TableFacts
from penstock.shapes.mirror_column import MirrorColumn
from penstock.shapes.pg_snapshot import Snapshot
from penstock.shapes.timeline import KnownRelation
from penstock.values.pgtype import PgType
from penstock.wire.messages import Relation, RelationColumn
from tests.pipeline_env import PipelineEnv
from tests.shapes.tables import shape

INTEGER = PgType(23, -1, "pg_catalog", "int4", "b")
FACTS = TableFacts(
    1, "shop", "a", ("ns", "shop", "a"), "d", (MirrorColumn("id", 1, INTEGER, key=True),), Accepted(shape())
)
COLUMNS = RelationColumn("id", 23, -1, True), RelationColumn("old", 25, -1, False)
RELATIONS = {
    (1, version): [KnownRelation(version, Lsn(0), Relation(1, "shop", "a", "d", COLUMNS[:version]), None)]
    for version in (1, 2)
}


def entry(lsn: int, *, oid: int = 1, version: int = 1, size: int = 10, max_xid: int = 700) -> FileEntry:
    return FileEntry(
        f"{lsn}.{oid}", oid, version, 1, size, lsn, lsn, ("id",), counts=ChangeCounts(inserts=1), max_xid=max_xid
    )


def window(start: int, *files: FileEntry) -> WindowRecord:
    now = datetime(2026, 11, 21, tzinfo=UTC)
    totals = {"rows": len(files), "bytes": 0, "transactions": 1, "messages": 0}
    times = {"source_time": now, "planned_at": now, "staged_at": now, "seconds": 1.0}
    return WindowRecord(
        "p",
        Lsn(start),
        Lsn(start + 10),
        "a",
        "confirmed",
        files=files,
        era=1,
        digest=None,
        **totals,
        **times,
    )  # type: ignore[arg-type]


WINDOWS = [window(10, entry(12)), window(20), window(30, entry(32), entry(33, oid=2, size=999)), window(40, entry(42))]


def test_windows_are_due_between_two_places() -> None:
    assert landed.windows_due(WINDOWS, Lsn(20), Lsn(35)) == WINDOWS[1:3]
    assert landed.windows_due(WINDOWS, None) == WINDOWS
    assert landed.windows_due(WINDOWS, Lsn(50)) == []
    assert landed.windows_due(WINDOWS, Lsn(20), Lsn(30)) == WINDOWS[1:2], (
        "a window from the goal on holds nothing before it"
    )


@pytest.mark.parametrize(("most_bytes", "windows"), [(1, 2), (10, 2), (19, 2), (20, 3), (30, 4), (1 << 40, 4)])
def test_a_chunk_holds_what_fits_and_at_least_one_window_with_changes(most_bytes: int, windows: int) -> None:
    assert landed.chunk(WINDOWS, 1, most_bytes=most_bytes) == WINDOWS[:windows]


def test_a_chunk_of_windows_without_the_table_is_all_of_them() -> None:
    assert landed.chunk(WINDOWS, 3, most_bytes=1) == WINDOWS


def test_a_snapshot_sees_what_had_ended_before_it() -> None:
    snapshot = Snapshot.parse("700:705:701,703")

    assert [xid for xid in range(698, 707) if snapshot.sees(xid)] == [698, 699, 700, 702, 704]
    assert not Snapshot.parse("700:700:").sees(700)


def fitting(
    env: PipelineEnv, *windows: WindowRecord, snapshot: str = "700:705:701", goal: Lsn | None = None
) -> list[str]:
    found = landed.fitting(env.ctx, FACTS, Snapshot.parse(snapshot), windows, Landed(RELATIONS), goal=goal)
    return [each.path for each, _ in found]


@pytest.fixture
def env(tmp_path: Path) -> PipelineEnv:
    return PipelineEnv(None, None, tmp_path, "p")


def test_files_that_the_copy_saw_whole_or_that_come_after_the_goal_are_left_out(env: PipelineEnv) -> None:
    seen, after = window(50, entry(52, max_xid=699)), window(60, entry(62), entry(69))

    assert fitting(env, *WINDOWS, seen) == ["12.1", "32.1", "42.1"]
    assert fitting(env, after, goal=Lsn(65)) == ["62.1"]


def test_a_file_of_an_older_shape_is_left_out_only_if_the_copy_saw_every_change_in_it(env: PipelineEnv) -> None:
    def landed(*xids: int) -> WindowRecord:
        path = f"{'-'.join(map(str, xids))}.parquet"
        writer = env.ctx.landing.writer(path, ["id"])
        writer.write(rows(xids))
        writer.close(oid=1, version=2, counts=ChangeCounts(inserts=len(xids)))
        return window(70, replace(entry(72, version=2, max_xid=max(xids)), path=path))

    assert fitting(env, landed(690, 700, 704)) == []
    with pytest.raises(LakeError, match=r"schema-change.*a column old that cannot be told to be one of the catalog's"):
        fitting(env, landed(690, 701))


def rows(xids: tuple[int, ...]) -> object:
    import pyarrow as pa  # noqa: PLC0415

    from penstock.contract.schema import landing_schema  # noqa: PLC0415

    schema = landing_schema(["id"])
    now = datetime(2026, 11, 21, tzinfo=UTC)
    known = [
        {"commit_lsn": 1, "ordinal": at, "op": "I", "committed_at": now, "xid": xid, "new": {"id": "1"}}
        for at, xid in enumerate(xids)
    ]
    return pa.RecordBatch.from_pylist(known, schema=schema)


@pytest.mark.parametrize("text", ["", "now", "16-B374D848", "yesterday", "G/1"])
def test_a_place_that_is_neither_a_position_nor_a_time_is_refused_with_both_forms(env: PipelineEnv, text: str) -> None:
    with pytest.raises(ConfigError, match=r"range-invalid.*16/B374D848.*2026-11-21T09:30:00Z"):
        resolve_position(env.ctx, "upto", text, WINDOWS, Lsn(50))


def test_a_place_that_is_not_landed_yet_is_refused(env: PipelineEnv) -> None:
    assert resolve_position(env.ctx, "upto", " 0/32 ", WINDOWS, Lsn(0x32)) == 0x32
    for text in ("0/33", "2026-11-21T00:00:01", "2026-11-21T01:00:01+01:00"):
        with pytest.raises(ConfigError, match=r"range-invalid.*everything is landed through"):
            resolve_position(env.ctx, "upto", text, WINDOWS, Lsn(0x32))

"""What lands is what was written, in bounded memory, under its name only when whole."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.contract.manifest import ChangeCounts
from penstock.contract.schema import CONTRACT_KEY, NO_COLUMNS_FIELD, copy_file_schema, copy_schema, landing_schema
from penstock.errors import LakeError
from penstock.landing import writer as writer_module
from penstock.landing.row_groups import BUFFERED_BYTES, COPY_GROUP_BYTES, SMALL_BYTES, Budget
from penstock.landing.writer import FileWriter, close_all
from penstock.landing.zone import LandingZone
from tests.landing.samples import COLUMNS, batch, inserts

PATH = "shop/windows/w/a/16385.1.parquet"


@pytest.fixture
def zone(tmp_path: Path) -> LandingZone:
    return LandingZone.open(str(tmp_path), {})


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_what_was_written_is_read_back_with_null_empty_and_unknown_apart(zone: LandingZone) -> None:
    writer = zone.writer(PATH, COLUMNS)
    new = {"id": "1", "Note": "", "a.b": None}
    writer.write(
        batch(["I", "U", "D"], [new, new, None], [None, {**new, "id": "0"}, new], unchanged=[None, ["a.b"], None])
    )
    entry = writer.close(
        oid=16385, version=1, counts=ChangeCounts(inserts=1, updates=1, deletes=1, unchanged=1, old_key=2)
    )

    table = zone.read(PATH)
    assert table.schema.equals(landing_schema(COLUMNS), check_metadata=True)
    assert table.column("op").to_pylist() == ["I", "U", "D"]
    assert table.column("new").to_pylist() == [new, new, None]
    assert table.column("old").to_pylist() == [None, {**new, "id": "0"}, new]
    assert table.column("unchanged").to_pylist() == [None, ["a.b"], None]
    assert (entry.rows, entry.min_commit_lsn, entry.max_commit_lsn) == (3, 1000, 1002)
    assert entry.counts == ChangeCounts(inserts=1, updates=1, deletes=1, unchanged=1, old_key=2)
    assert (entry.path, entry.oid, entry.version, entry.columns) == (PATH, 16385, 1, COLUMNS)
    assert entry.bytes == zone._require(PATH).size


def test_a_copys_rows_are_read_back_as_values_and_texts(zone: LandingZone) -> None:
    typed = {"id": "bigint", "Note": "array<int>"}
    writer = zone.copy_writer(PATH, COLUMNS, typed)
    rows = [{"id": 1, "Note": [1, None], "a.b": ""}, {"id": None, "Note": None, "a.b": None}]
    schema = copy_schema(COLUMNS, typed)
    writer.write(pa.RecordBatch.from_pylist(rows, schema))
    entry = writer.close(oid=16385)

    table = zone.read(PATH)
    assert table.schema.equals(copy_file_schema(COLUMNS, typed))
    assert table.schema.metadata == {CONTRACT_KEY: b"3"}
    assert [field.metadata[b"PARQUET:field_id"] for field in table.schema] == [b"1", b"2", b"3", b"4"]
    assert table.to_pylist() == [{**row, "_misfits": None} for row in rows]
    assert (entry.rows, entry.counts, entry.version, entry.min_commit_lsn) == (2, ChangeCounts(inserts=2), 0, None)
    assert (entry.columns, dict(entry.typed)) == (COLUMNS, typed)
    assert entry.bytes == zone._require(PATH).size


def test_a_copy_that_is_given_up_leaves_nothing(zone: LandingZone, tmp_path: Path) -> None:
    writer = zone.copy_writer(PATH, COLUMNS, {})
    schema = copy_schema(COLUMNS, {})
    row = {"id": "1", "Note": "x" * COPY_GROUP_BYTES, "a.b": None}
    writer.write(pa.RecordBatch.from_pylist([row], schema))
    writer.abort()

    assert files(tmp_path) == []


def test_positions_are_kept_over_all_batches_in_any_order(zone: LandingZone) -> None:
    writer = zone.writer(PATH, COLUMNS)
    for lsn, xid in ((500, 8), (90, 1 << 40), (70_000, None)):
        writer.write(inserts(2, first_lsn=lsn, xid=xid))
    entry = writer.close(oid=1, version=1, counts=ChangeCounts(inserts=6))

    assert (entry.min_commit_lsn, entry.max_commit_lsn, entry.max_xid) == (90, 70_001, 1 << 40)


def test_commit_times_are_kept_unless_one_is_unknown(zone: LandingZone) -> None:
    def times(*values: int | None) -> pa.RecordBatch:
        rows = inserts(len(values))
        place = rows.schema.get_field_index("committed_at")
        return rows.set_column(place, "committed_at", pa.array(values, pa.timestamp("us", tz="UTC")))

    writer, timeless, empty = (zone.writer(f"{name}.parquet", COLUMNS) for name in "abc")
    for values in ((5, 9), (-(1 << 60), 7)):
        writer.write(times(*values))
    timeless.write(times(5, None))
    entries = [
        each.close(oid=1, version=1, counts=ChangeCounts(inserts=each.rows)) for each in (writer, timeless, empty)
    ]

    ends = [(entry.min_committed_at, entry.max_committed_at) for entry in entries]
    assert ends == [(-(1 << 60), 9), (None, None), (None, None)]


def test_a_file_without_rows_is_a_whole_file(zone: LandingZone) -> None:
    entry = zone.writer(PATH, COLUMNS).close(oid=1, version=1, counts=ChangeCounts())

    assert (entry.rows, entry.min_commit_lsn, entry.max_commit_lsn, entry.max_xid) == (0, None, None, None)
    assert zone.read(PATH).schema.equals(landing_schema(COLUMNS))


def test_a_relation_without_columns_keeps_its_rows(zone: LandingZone) -> None:
    writer = zone.writer(PATH, ())
    writer.write(batch(["I", "D"], [{}, None], [None, {}], columns=()))
    entry = writer.close(oid=1, version=1, counts=ChangeCounts(inserts=1, deletes=1))

    table = zone.read(PATH)
    assert entry.columns == ()
    assert table.column("new").to_pylist() == [{NO_COLUMNS_FIELD: None}, None]
    assert table.column("old").to_pylist() == [None, {NO_COLUMNS_FIELD: None}]


def test_counts_that_do_not_add_up_are_refused(zone: LandingZone) -> None:
    writer = zone.writer(PATH, COLUMNS)
    writer.write(inserts(2))

    with pytest.raises(ValueError, match="expected counts of 2 rows"):
        writer.close(oid=1, version=1, counts=ChangeCounts(inserts=1))
    writer.abort()


def test_duckdb_reads_the_file_as_we_do(zone: LandingZone, tmp_path: Path) -> None:
    writer = zone.writer(PATH, COLUMNS)
    writer.write(inserts(3, text="süß"))
    writer.close(oid=1, version=1, counts=ChangeCounts(inserts=3))

    query = f"""select commit_lsn, op, origin, new."Note", new."a.b", old from '{tmp_path / PATH}' order by ordinal"""
    assert duckdb.sql(query).fetchall() == [(1000 + n, "I", "elsewhere", "süß", None, None) for n in range(3)]


def test_values_are_plain_and_zstd_while_operations_have_a_dictionary(zone: LandingZone, tmp_path: Path) -> None:
    writer = zone.writer(PATH, COLUMNS)
    writer.write(inserts(10, text="x" * SMALL_BYTES))
    writer.close(oid=1, version=1, counts=ChangeCounts(inserts=10))

    group = pq.ParquetFile(tmp_path / PATH).metadata.row_group(0)
    columns = {group.column(number).path_in_schema: group.column(number) for number in range(group.num_columns)}
    assert {column.compression for column in columns.values()} == {"ZSTD"}
    assert columns["op"].has_dictionary_page
    assert not columns["new.id"].has_dictionary_page
    assert columns["commit_lsn"].statistics.min == 1000


def test_a_file_of_a_few_rows_is_not_compressed(zone: LandingZone, tmp_path: Path) -> None:
    writer = zone.writer(PATH, COLUMNS)
    writer.write(inserts(10))
    writer.close(oid=1, version=1, counts=ChangeCounts(inserts=10))

    group = pq.ParquetFile(tmp_path / PATH).metadata.row_group(0)
    assert {group.column(number).compression for number in range(group.num_columns)} == {"UNCOMPRESSED"}
    assert group.column(0).statistics.min == 1000


def closing(zone: LandingZone, count: int) -> list[tuple[FileWriter, int, int, ChangeCounts]]:
    writers = [zone.writer(f"w/{number}.parquet", COLUMNS) for number in range(count)]
    for writer in writers:
        writer.write(inserts(1))
    return [(writer, number, 1, ChangeCounts(inserts=1)) for number, writer in enumerate(writers)]


def test_many_files_are_closed_together_each_with_its_own_entry(zone: LandingZone, tmp_path: Path) -> None:
    entries = close_all(closing(zone, 50))

    assert [(entry.oid, entry.path) for entry in entries] == [(n, f"w/{n}.parquet") for n in range(50)]
    assert [entry.bytes for entry in entries] == [zone._require(entry.path).size for entry in entries]
    assert files(tmp_path) == sorted(entry.path for entry in entries)


def test_none_of_many_files_appears_when_one_cannot_be_made_durable(zone: LandingZone, tmp_path: Path) -> None:
    def full() -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    together = closing(zone, 50)
    together[40][0].groups.draft.persist = full  # type: ignore[method-assign]

    with pytest.raises(LakeError, match=r"w/40\.parquet, got: No space left"):
        close_all(together)
    assert zone.list("w") == []
    for writer, *_ in together:
        writer.abort()
    assert files(tmp_path) == []


def test_the_file_appears_only_when_it_is_closed(zone: LandingZone, tmp_path: Path) -> None:
    writer = zone.writer(PATH, COLUMNS)
    writer.write(inserts(10))
    writer.groups.flush()

    assert zone.list("shop") == []
    assert [name.endswith(".part") for name in files(tmp_path)] == [True]
    writer.close(oid=1, version=1, counts=ChangeCounts(inserts=10))
    assert files(tmp_path) == [PATH]


def test_an_aborted_file_leaves_nothing(zone: LandingZone, tmp_path: Path) -> None:
    for flushed in (False, True):
        writer = zone.writer(PATH, COLUMNS)
        writer.write(inserts(10))
        if flushed:
            writer.groups.flush()
        writer.abort()

    assert files(tmp_path) == []


def test_aborting_a_closed_file_keeps_it(zone: LandingZone, tmp_path: Path) -> None:
    writer = zone.writer(PATH, COLUMNS)
    writer.close(oid=1, version=1, counts=ChangeCounts())
    writer.abort()

    assert files(tmp_path) == [PATH]


def test_a_closed_file_takes_no_more_rows(zone: LandingZone) -> None:
    writer = zone.writer(PATH, COLUMNS)
    writer.close(oid=1, version=1, counts=ChangeCounts())

    with pytest.raises(ValueError, match="which is closed"):
        writer.write(inserts(1))


def test_a_row_group_is_written_when_enough_bytes_have_come(
    zone: LandingZone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "_CHANGES", replace(writer_module._CHANGES, group_bytes=100_000))
    writer = zone.writer(PATH, COLUMNS)
    for _ in range(5):
        writer.write(inserts(1, text="x" * 60_000))
    writer.close(oid=1, version=1, counts=ChangeCounts(inserts=5))

    groups = pq.ParquetFile(tmp_path / PATH).metadata
    assert [groups.row_group(number).num_rows for number in range(groups.num_row_groups)] == [2, 2, 1]


@pytest.mark.slow
@pytest.mark.heavy
def test_a_thousand_open_files_hold_no_more_memory_than_the_budget(zone: LandingZone) -> None:
    before = pa.total_allocated_bytes()
    writers = [zone.writer(f"shop/windows/w/a/{oid}.1.parquet", COLUMNS) for oid in range(1000)]
    held = []
    for number in range(2000):
        writers[number % 1000].write(inserts(1, text=chr(97 + number % 26) * 100_000))
        held.append(pa.total_allocated_bytes() - before)
    entries = [writer.close(oid=oid, version=1, counts=ChangeCounts(inserts=2)) for oid, writer in enumerate(writers)]

    assert sum(entry.rows for entry in entries) == 2000
    assert BUFFERED_BYTES // 2 < max(held) < BUFFERED_BYTES + (8 << 20)
    assert zone.read(entries[999].path).num_rows == 2


def test_the_fullest_file_is_the_one_that_writes(zone: LandingZone, tmp_path: Path) -> None:
    zone._budget = Budget(limit=100_000)
    small, large = zone.writer("small.parquet", COLUMNS), zone.writer("large.parquet", COLUMNS)
    small.write(inserts(1))
    large.write(inserts(1, text="x" * 90_000))
    small.write(inserts(1, text="x" * 20_000))

    assert [name.startswith(".large") for name in files(tmp_path)] == [True]
    small.abort()
    large.abort()


def test_more_files_than_the_soft_limit_allows_can_be_open(tmp_path: Path) -> None:
    code = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (40, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
from penstock.contract.manifest import ChangeCounts
from penstock.landing.zone import LandingZone
from tests.landing.samples import COLUMNS, inserts
zone = LandingZone.open(sys.argv[1], {})
writers = [zone.writer(f"{n}.parquet", COLUMNS) for n in range(100)]
for writer in writers:
    writer.write(inserts(1))
    writer.groups.flush()
for writer in writers:
    writer.close(oid=1, version=1, counts=ChangeCounts(inserts=1))
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, env=_environment())

    assert len(files(tmp_path)) == 100


def test_a_file_that_may_not_grow_is_reported_and_leaves_nothing(tmp_path: Path) -> None:
    code = """
import resource, sys, os
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
from penstock.errors import LakeError
from penstock.landing.zone import LandingZone
from tests.landing.samples import COLUMNS, inserts
writer = LandingZone.open(sys.argv[1], {}).writer("t.parquet", COLUMNS)
try:
    for _ in range(100):
        writer.write(inserts(1, text=os.urandom(10_000).hex()))
        writer.groups.flush()
except LakeError as error:
    print(error)
writer.abort()
"""
    said = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], check=True, env=_environment(), capture_output=True, text=True
    )

    assert said.stdout.startswith(f"[landing-unwritable] expected to write file://{tmp_path}/t.parquet, got: ")
    assert os.strerror(errno.EFBIG) in said.stdout
    assert said.stderr == ""
    assert files(tmp_path) == []


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "penstock-test", str(folder)], check=False, capture_output=True
    )
    if made.returncode != 0:
        pytest.skip("mounting a tmpfs is not permitted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_reported_and_the_attempt_leaves_nothing(tiny_disk: Path) -> None:
    zone = LandingZone.open(str(tiny_disk), {})
    writer = zone.writer("t.parquet", COLUMNS)

    def fill() -> None:
        for _ in range(20):
            writer.write(inserts(1, text=os.urandom(40_000).hex()))
            writer.groups.flush()

    with pytest.raises(LakeError, match=r"\[landing-unwritable\].*No space left on device"):
        fill()
    writer.abort()
    assert files(tiny_disk) == []


def test_a_disk_that_is_full_at_the_close_is_reported_there(tiny_disk: Path) -> None:
    zone = LandingZone.open(str(tiny_disk), {})
    writer = zone.writer("t.parquet", COLUMNS)
    for _ in range(20):
        writer.write(inserts(1, text=os.urandom(40_000).hex()))

    with pytest.raises(LakeError, match="landing-unwritable"):
        writer.close(oid=1, version=1, counts=ChangeCounts(inserts=20))
    writer.abort()
    assert files(tiny_disk) == []


def test_on_a_full_disk_every_open_file_can_be_given_up_in_any_order(tiny_disk: Path) -> None:
    (tiny_disk / "ballast").write_bytes(bytes(250_000))
    zone = LandingZone.open(str(tiny_disk), {})
    zone._budget = Budget(limit=100_000)
    small, medium, large = (zone.writer(f"{name}.parquet", COLUMNS) for name in ("small", "medium", "large"))
    small.write(inserts(1))
    medium.write(inserts(1, text=os.urandom(30_000).hex()))

    with pytest.raises(LakeError, match="landing-unwritable"):
        large.write(inserts(1, text=os.urandom(45_000).hex()))
    for writer in (small, medium, large):
        writer.abort()
    assert files(tiny_disk) == ["ballast"]


def test_a_killed_writer_leaves_no_file_under_the_name(tmp_path: Path) -> None:
    code = """
import os, signal, sys
from penstock.landing.zone import LandingZone
from tests.landing.samples import COLUMNS, inserts
writer = LandingZone.open(sys.argv[1], {}).writer("t.parquet", COLUMNS)
writer.write(inserts(1000))
writer.groups.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False, env=_environment())

    assert killed.returncode == -signal.SIGKILL
    assert LandingZone.open(str(tmp_path), {}).list("") == []


def _environment() -> dict[str, str]:
    root = Path(__file__).parents[2]
    return os.environ | {"PYTHONPATH": f"{root}{os.pathsep}{root / 'plugins'}"}

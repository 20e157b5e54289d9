"""An object store as DuckDB sees it: any thread reads any place, a small file is asked for once, names are no patterns."""

from pathlib import Path
from threading import Thread

import duckdb
import pytest
from pyarrow import fs

from penstock.engine import files as engine_files
from penstock.engine.failure import EngineFailure
from penstock.engine.files import SMALL, DuckFiles, Files, Store
from penstock.store_trouble import Trouble
from tests.engine.folder_lake import FolderLake
from tests.spark import merged_histories


def opened(folder: Path) -> DuckFiles:
    return DuckFiles("lake", fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem()))


@pytest.mark.parametrize("size", [200, SMALL + 200], ids=["a small file", "a large file"])
def test_a_thread_reads_where_it_sought_whatever_others_do_with_the_handle(tmp_path: Path, size: int) -> None:
    content = bytes(n % 251 for n in range(size))
    (tmp_path / "x").write_bytes(content)
    file = opened(tmp_path).open("lake://x")
    file.seek(10)

    other = Thread(target=lambda: file.seek(100))
    other.start()
    other.join()

    assert file.read(5) == content[10:15]
    assert file.read(5) == content[15:20]


def test_a_small_file_is_read_once_however_often_it_is_opened(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"content")
    files = opened(tmp_path)
    assert files.size("lake://x") == 7
    (tmp_path / "x").unlink()

    assert files.open("lake://x").read() == b"content"


def test_a_file_that_is_written_is_read_as_it_is_then(tmp_path: Path) -> None:
    files = opened(tmp_path)
    with files.open("lake://x", "wb") as file:
        file.write(b"rows")

    assert files.open("lake://x").read() == b"rows"


def test_a_pattern_in_brackets_is_the_name_itself(tmp_path: Path) -> None:
    assert opened(tmp_path).glob("lake://t/a[*]b[[]c[?].parquet") == ["lake://t/a*b[c?.parquet"]


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    failure = failed(opened(tmp_path))

    assert (failure.kind, failure.file) == ("FileNotFoundError", f"{tmp_path}/x.parquet")
    assert failure.unreadable
    assert failure.trouble is None


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ("AWS Error NETWORK_CONNECTION during GetObject operation", Trouble.BUSY),
        ("AWS Error UNKNOWN (HTTP status 503) during GetObject operation", Trouble.BUSY),
        ("AWS Error ACCESS_DENIED during GetObject operation", Trouble.REFUSED),
        ("AWS Error NO_SUCH_KEY during GetObject operation", None),
    ],
)
def test_an_error_of_the_store_says_what_is_the_matter_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, trouble: Trouble | None
) -> None:
    def refuse(*given: object) -> None:
        raise OSError(text)

    monkeypatch.setattr(engine_files, "_Content", refuse)
    (tmp_path / "x.parquet").write_bytes(b"PAR1")

    failure = failed(opened(tmp_path))

    assert (failure.kind, failure.unreadable, failure.trouble) == ("OSError", True, trouble)


def test_a_value_is_no_answer_of_a_store() -> None:
    for value in ("HTTP status 503", "Traceback: OSError: SLOW_DOWN", "StoreError: busy at lake://x.parquet"):
        with pytest.raises(duckdb.Error) as caught:
            duckdb.connect().execute("select cast(? as int)", [value])
        assert EngineFailure.of(caught.value).trouble is None


def test_memory_that_a_full_disk_kept_from_being_freed_is_the_disks_trouble() -> None:
    spilled = duckdb.OutOfMemoryException("failed to offload data block of size 256.0 KiB (1.0 MiB/1.0 MiB used).")

    failure = EngineFailure.of(spilled)

    assert (failure.file, failure.unreadable, failure.trouble) == (None, False, Trouble.FULL)
    assert EngineFailure.of(duckdb.OutOfMemoryException("failed to pin block of size 256.0 KiB")).trouble is None


def failed(files: DuckFiles) -> EngineFailure:
    connection = duckdb.connect()
    connection.register_filesystem(files)
    with pytest.raises(duckdb.Error) as caught:
        connection.execute("select * from read_parquet('lake://x.parquet')").fetchall()
    return EngineFailure.of(caught.value)


def test_histories_end_as_the_judge_says_through_a_store(tmp_path: Path) -> None:
    lake = FolderLake(tmp_path)
    store = Store("landing", fs.LocalFileSystem()), Store("lake", fs.LocalFileSystem())
    lake.files = Files(*store)

    for batch in merged_histories.keyed(lake, 20265, histories=60, batches=2, per_batch=200, full=False):
        assert batch.found == batch.expected, batch.name

"""Disks that are really full, to the last block: what frees room works there, and what needs room says where there is none."""

import itertools
import logging
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.errors import LakeError
from penstock.flow.spark_job import SparkJob
from penstock.landing import layout
from tests.env_fixtures import RealSubmit
from tests.pipeline_env import PipelineEnv

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small disk"),
]
_numbers = itertools.count(1)
_log = logging.getLogger(__name__)


@contextmanager
def small_disk(folder: Path, size: str = "24m") -> Iterator[Callable[[], Path]]:
    """Mount a small disk, and yield a function that fills it to its last block and returns the ballast."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)

    def fill() -> Path:
        ballast = folder / f"ballast-{next(_numbers)}"
        with ballast.open("wb", buffering=0) as file:
            for block in (1 << 20, 1 << 12):
                try:
                    while True:
                        file.write(bytes(block))
                except OSError as error:
                    _log.info("%s is full: %s", folder, error.strerror)
        return ballast

    try:
        yield fill
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def landing_disk(env16: PipelineEnv, tmp_path: Path) -> Iterator[Callable[[], Path]]:
    with small_disk(tmp_path / "landing") as fill:
        yield fill


@pytest.fixture
def lake_disk(env16: PipelineEnv) -> Iterator[Callable[[], Path]]:
    assert env16.lake is not None
    with small_disk(env16.lake.warehouse / env16.name) as fill:
        yield fill


def begun(env: PipelineEnv) -> None:
    env.bootstrap(
        "create table t (id int primary key, v text); insert into t select n, 'v' from generate_series(1, 100) n"
    )
    change(env)
    env.merge()


def change(env: PipelineEnv) -> None:
    env.land("update t set v = v || md5(random()::text)")


def ready(env: PipelineEnv) -> bool:
    return {table.state for table in env.tables} == {"ready"}


def test_maintenance_makes_room_in_a_landing_zone_that_has_none(
    env16: PipelineEnv, landing_disk: Callable[[], Path]
) -> None:
    begun(env16)
    windows = env16.ctx.landing.folders(layout.windows_folder(env16.name))
    assert windows
    landing_disk()
    env16.flush("update t set v = 'w'")
    with pytest.raises(LakeError, match=r"\[landing-unwritable\].*No space left on device"):
        env16.capture()

    env16.settings["landing"] = {"uri": str(env16.landing), "retention": "1s"}  # as its runbook says
    report = env16.maintain()

    assert report is not None
    assert report.landing.windows == len(windows)
    assert not set(windows) & set(env16.ctx.landing.folders(layout.windows_folder(env16.name)))
    env16.follow()
    assert env16.unlike() == []
    assert ready(env16)


def test_maintenance_of_the_lake_does_without_the_landing_zone(
    env16: PipelineEnv, landing_disk: Callable[[], Path]
) -> None:
    begun(env16)
    ballast = landing_disk()

    report = env16.maintain()  # every window is younger than landing.retention

    assert report is not None
    assert all(table.after for table in report.lake.tables)
    assert any("go to" in line and "landing-unwritable" in line for line in env16.lines)
    ballast.unlink()
    env16.merge(force=True)
    assert env16.unlike() == []


def test_a_lake_that_is_full_has_its_name_and_pauses_nothing(env16: PipelineEnv, lake_disk: Callable[[], Path]) -> None:
    begun(env16)
    change(env16)
    ballast = lake_disk()

    with pytest.raises(LakeError, match=r"\[lake-unwritable\].*it is full"):
        env16.merge()
    with pytest.raises(LakeError, match=r"\[lake-unwritable\].*public\.t: .*it is full"):
        env16.maintain()

    assert ready(env16)
    ballast.unlink()
    env16.merge()
    env16.maintain()
    assert env16.unlike() == []
    assert ready(env16)


def test_orphans_go_from_a_lake_that_is_full_before_anything_is_written(
    env16: PipelineEnv, lake_disk: Callable[[], Path]
) -> None:
    env16.settings["maintain"] = {"orphans": "1d"}
    begun(env16)
    ((path,),) = env16.spark.sql(f"select file_path from lake.{env16.name}.public.t.files limit 1").collect()
    orphan = Path(path.removeprefix("file:")).with_name("of-a-run-that-failed.parquet")
    orphan.write_bytes(bytes(4 << 20))
    os.utime(orphan, (0, 0))
    lake_disk()

    env16.maintain()

    assert not orphan.exists()
    change(env16)
    env16.merge()
    assert env16.unlike() == []


def test_a_driver_that_cannot_write_its_result_says_so(
    env16: PipelineEnv, landing_disk: Callable[[], Path], real_submit: RealSubmit, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(env16)
    change(env16)
    full: list[Path] = []

    def submit(job: SparkJob) -> None:
        full.append(landing_disk())
        real_submit(_log.info)(job)

    with monkeypatch.context() as patched:
        patched.setattr(env16, "submit", submit)
        with pytest.raises(LakeError, match=r"\[landing-unwritable\] expected Spark's driver to write its result"):
            env16.merge()

    full[0].unlink()
    assert ready(env16)
    env16.merge()
    assert env16.unlike() == []


def test_spark_without_room_for_its_shuffle_files_says_so(
    env16: PipelineEnv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(env16)
    env16.land("insert into t select n, md5(n::text) from generate_series(1000, 400000) n")
    env16.settings["spark"] = {"task_memory": "64MiB"}
    with small_disk(tmp_path / "scratch", "1m"), monkeypatch.context() as patched:
        patched.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "scratch"))
        with pytest.raises(LakeError, match=r"\[spark-failed\].*it is full.*spark.local.dir"):
            env16.merge()

    assert ready(env16)
    env16.merge()
    assert ready(env16)

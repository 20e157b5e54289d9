"""The decoder is compiled once: whoever starts the process finds the machine code that the set-up has made."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.wire import machine_code
from tests.pipeline_env import ROOT, PipelineEnv

STATS = """
from penstock.wire import columnar, passes
columnar.warm_up()
hits = [sum(each.stats.cache_hits.values()) for each in (passes.scan, passes.group, passes.gather)]
misses = [sum(each.stats.cache_misses.values()) for each in (passes.scan, passes.group, passes.gather)]
print(hits, misses, passes.scan.stats.cache_path)
"""


def compiled(folder: Path) -> dict[str, int]:
    """Return the machine code on disk, by file, with the time when it was written."""
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("passes.*.nb?")}


def stats(home: Path, **environment: str) -> str:
    """Load the decoder in a process that knows nothing of us but the library's place."""
    return subprocess.run(
        [sys.executable, "-c", STATS],
        env={"HOME": str(home), "PYTHONPATH": str(ROOT / "plugins"), **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=550,
    ).stdout


def test_a_process_without_any_variable_loads_what_the_set_up_compiled(tmp_path: Path) -> None:
    stats(tmp_path, NUMBA_CACHE_DIR=str(ROOT / ".local" / "numba"))  # as the set-up does; loads it, if it has

    next_to_source = compiled(ROOT / "plugins")

    said = stats(tmp_path)

    assert said.startswith("[1, 1, 1] [0, 0, 0] ")
    assert str(ROOT / ".local" / "numba") in said
    assert compiled(ROOT / "plugins") == next_to_source
    assert not compiled(tmp_path)


def test_the_command_line_captures_without_the_stacks_environment_and_compiles_nothing(
    env16: PipelineEnv, tmp_path: Path
) -> None:
    stats(tmp_path, NUMBA_CACHE_DIR=str(ROOT / ".local" / "numba"))
    env16.source.execute("create table t (id int primary key, v text)")
    env16.begin()
    env16.source.execute("insert into t select n, 'v' from generate_series(1, 1000) n")
    file, shell = env16.file(tmp_path), {"HOME": str(tmp_path), **env16.connections()}
    before, next_to_source = compiled(ROOT / ".local" / "numba"), compiled(ROOT / "plugins")

    said = subprocess.run(
        [ROOT / "bin" / "penstock", "capture", file],
        env=shell,
        capture_output=True,
        text=True,
        check=False,
        timeout=550,
    )

    assert "changes 1000" in said.stdout, said.stdout + said.stderr
    assert compiled(ROOT / ".local" / "numba") == before
    assert len(before) > 0
    assert compiled(ROOT / "plugins") == next_to_source
    assert not compiled(tmp_path)


def test_a_place_that_is_not_ours_is_left_to_numba(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "file"))

    assert machine_code.place() is None
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))
    monkeypatch.delenv("PENSTOCK_LOCAL", raising=False)
    assert machine_code.place() == tmp_path / ".local" / "numba"
    assert os.access(tmp_path / ".local" / "numba", os.W_OK)

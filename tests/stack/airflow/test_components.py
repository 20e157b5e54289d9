"""What becomes of a component of Airflow that ends, in the shell that runs it."""

import os
import subprocess
from pathlib import Path

import pytest

from stack.airflow.airflow_server import RUN


def run_component(folder: Path, program: str, *, well: int, tries: int) -> tuple[list[str], int]:
    """Run one component to its end; return what the session's log says, and how often it was started."""
    (folder / "airflow").write_text(f"#!/bin/sh\necho started >>{folder}/starts\n{program}\n")
    (folder / "airflow").chmod(0o755)
    done = subprocess.run(
        ["sh", "-c", f"{RUN}\nrun scheduler", "airflow", str(folder), str(well), str(tries), "0"],
        env={"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines(), len((folder / "starts").read_text().splitlines())


def test_one_that_was_well_and_lost_its_database_is_started_again(tmp_path: Path) -> None:
    once = f"[ $(wc -l <{tmp_path}/starts) -gt 1 ] || sleep 2; exit 1"
    said, starts = run_component(tmp_path, once, well=2, tries=3)

    assert said[:-1] == ["scheduler is started again after status 1"] * 3
    assert said[-1] == "scheduler ended with status 1"
    assert starts == 4, "the first, and as many tries as the database may be away"


@pytest.mark.parametrize("status", [0, 2])
def test_one_that_was_never_well_has_a_cause_that_no_try_mends(tmp_path: Path, status: int) -> None:
    said, starts = run_component(tmp_path, f"exit {status}", well=60, tries=30)

    assert (said, starts) == ([f"scheduler ended with status {status}"], 1)

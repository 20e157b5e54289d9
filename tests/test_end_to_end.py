"""The demo as its user runs it, in a checkout of its own: from nothing, once more after a kill, and interrupted."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from stack.paths import Project

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

VERDICT = re.compile(r"equal: 22 tables, (\d+) rows, lake = source at [0-9A-F]+/[0-9A-F]+")
GENERATED = (".git", ".venv", ".local", "*cache*", "__pycache__", "node_modules")


@dataclass(frozen=True)
class Checkout:
    """A copy of this project in which nothing has ever run."""

    root: Path
    home: Path

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command of the project as `make` does."""
        environ = {"HOME": str(self.home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        return subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=self.root,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *arguments: str) -> tuple[int, list[str]]:
        """Run a command to its end; return its exit status and its lines."""
        with self.start(*arguments) as process:
            said, _ = process.communicate()
            return process.returncode, said.splitlines()

    def processes(self) -> list[str]:
        """List the command lines of all processes that work for this checkout."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                    where = f"{line} {(entry / 'cwd').resolve()}"
                except OSError:
                    continue
                if str(self.root) in where:
                    found.append(line)
        return found


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    here = Project.here()
    root = tmp_path_factory.mktemp("end-to-end") / "penstock"
    shutil.copytree(here.root, root, ignore=shutil.ignore_patterns(*GENERATED), symlinks=True)
    if here.jars.exists():  # fetched once is enough
        shutil.copytree(here.jars, root / ".local" / "jars")
    made = Checkout(root, tmp_path_factory.mktemp("home"))
    yield made
    made.run("stack", "clean")


def wait_for(process: subprocess.Popen[str], sign: str) -> list[str]:
    """Read the process's lines up to the one that holds `sign`."""
    said = []
    assert process.stdout is not None
    for line in process.stdout:
        said.append(line.rstrip())
        if sign in line:
            return said
    pytest.fail("\n".join([f"expected {sign!r} in:", *said]))


def test_a_demo_ends_with_lake_and_source_equal_although_the_one_before_was_killed(checkout: Checkout):
    with checkout.start("demo") as killed:
        wait_for(killed, "copy: done")
        killed.kill()
    assert any("demo.workload" in line for line in checkout.processes())

    status, said = checkout.run("demo")

    assert status == 0, "\n".join(said)
    verdict = VERDICT.fullmatch(said[-1])
    assert verdict, "\n".join(said)
    assert int(verdict[1]) > 1_000_000
    assert checkout.processes() == []


def test_an_interrupted_demo_stops_what_it_started_and_says_so(checkout: Checkout):
    with checkout.start("demo") as interrupted:
        wait_for(interrupted, "The live load")
        interrupted.send_signal(signal.SIGINT)
        said, _ = interrupted.communicate()

    assert interrupted.returncode == 130
    assert "Interrupted" in said
    assert checkout.processes() == []


def test_up_goes_on_where_it_was_interrupted_leaves_what_runs_and_down_stops_it(checkout: Checkout):
    with checkout.start("demo", "up") as interrupted:
        before = wait_for(interrupted, "The live load")
        interrupted.send_signal(signal.SIGINT)
        interrupted.communicate()
    kept = [line for line in checkout.processes() if "airflow" in line]

    status, said = checkout.run("demo", "up")
    assert status == 0, "\n".join(said)
    running = checkout.processes()
    _, shown = checkout.run("stack", "status")
    status, _ = checkout.run("stack", "down")

    login = next(line for line in before if re.search(r"http://127\.0\.0\.1:\d+, login admin / \S+", line))
    assert before.index(login) < before.index(next(line for line in before if "A fresh beginning" in line))
    assert not any("A fresh beginning" in line for line in said)
    assert login in said
    assert login in shown
    assert any(line.split()[:2] == ["shop", "running"] for line in shown)
    assert any("demo.workload" in line for line in running)
    assert kept
    assert set(kept) <= set(running), "Airflow was left alone"
    assert status == 0
    assert checkout.processes() == []

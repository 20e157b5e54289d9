"""A source that may be killed: a durable server of the module's own, and worlds on it."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.flow.spark_job import catalog_secrets, describe
from stack.binaries import Binaries
from stack.postgres import Server
from tests.conftest import LakeCatalog, NewServer
from tests.world import ROOT, World, freeze

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def fragile(new_server: NewServer, binaries16: Binaries) -> Server:
    """A durable source that the tests may stop, crash and restart."""
    return new_server(binaries16, {"max_wal_senders": "20", "checkpoint_timeout": "1h"})


@pytest.fixture
def doomed(fragile: Server, postgres16: Server, lake: LakeCatalog, tmp_path: Path) -> Iterator[World]:
    """A world on the fragile source, without Spark."""
    number = next(_numbers)
    with (
        fragile.temporary_database(f"doomed{number}") as source,
        postgres16.temporary_database(f"doomed_ledger{number}") as ledger,
    ):
        world = World(source, ledger, tmp_path / "landing", f"d{number}", lake)
        world.settings = {"source": {"slot": f"penstock_{source.name}", "publication": f"penstock_{source.name}"}}
        yield world


def start(world: World, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """Start `tests.faults.killed` on a world."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.faults.killed", *arguments],
        env={
            **os.environ,
            "WORLD": json.dumps(freeze(world)),
            "PYTHONPATH": os.pathsep.join(str(ROOT / each) for each in ("plugins", "spark_apps", ".")),
            **environment,
        },
        cwd=ROOT,
        start_new_session=True,  # whose whole group it takes with it when it dies
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(world: World, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `tests.faults.killed` on a world and return what became of it."""
    with start(world, *arguments, **environment) as process:
        said, complained = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, said, complained)


def run_with_spark(world: World, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `tests.faults.killed` on a world, and carry out in this process what it wants of Spark."""
    with start(world, *arguments) as process:
        try:
            while process.poll() is None:
                for wanted in world.landing.glob(f"{world.name}/runs/*/wanted"):
                    _carry_out(world, wanted)
                time.sleep(0.05)
        except BaseException:
            process.kill()
            raise
        said, complained = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, said, complained)


def _carry_out(world: World, wanted: Path) -> None:
    application, *arguments = json.loads(wanted.read_text())
    wanted.unlink()
    world.submit(describe(world.ctx, application, tuple(arguments), catalog_secrets(world.ctx)))
    wanted.with_name("carried-out").write_text("")

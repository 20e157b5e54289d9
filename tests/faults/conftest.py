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

from penstock.lake.plan import MergePlan
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
        while process.poll() is None:
            for wanted in world.landing.glob(f"{world.name}/runs/*/wanted"):
                wanted.unlink()
                _merge(world, wanted.parent)
            time.sleep(0.05)
        said, complained = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, said, complained)


def _merge(world: World, folder: Path) -> None:
    from penstock_spark import merge  # noqa: PLC0415  # tests without Spark do not pay for it

    assert world.spark is not None
    catalog = world.ctx.catalog
    environment = {
        "PENSTOCK_CATALOG_URI": catalog.jdbc_url(),
        "PENSTOCK_CATALOG_USER": catalog.user,
        "PENSTOCK_CATALOG_PASSWORD": catalog.password,
    }
    result = merge.run(world.spark, MergePlan.loads((folder / "plan.json").read_text()), environment)
    draft = folder / "result.json.draft"
    draft.write_text(result.dumps())
    draft.rename(folder / "result.json")

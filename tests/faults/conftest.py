"""A source that may be killed: a durable server of the module's own, and pipelines on it."""

from __future__ import annotations

import atexit
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from penstock.flow.spark_job import catalog_secrets, describe
from stack.servers.binaries import Binaries
from stack.servers.postgres import Server
from tests.conftest import LakeCatalog, NewServer
from tests.pipeline_env import ROOT, PipelineEnv

FORK_SERVER = ROOT / "tests" / "faults" / "fork_server.py"
IMPORTS = {"PYTHONPATH": os.pathsep.join(str(ROOT / each) for each in ("plugins", "spark_apps", "."))}
_numbers = itertools.count(1)
_kept: list[subprocess.Popen[bytes]] = []


@pytest.fixture(scope="module")
def fragile(new_server: NewServer, binaries16: Binaries) -> Server:
    """A durable source that the tests may stop, crash and restart."""
    return new_server(binaries16, {"max_wal_senders": "20", "checkpoint_timeout": "1h"})


@pytest.fixture
def doomed(fragile: Server, postgres16: Server, lake: LakeCatalog, tmp_path: Path) -> Iterator[PipelineEnv]:
    """A pipeline on the fragile source, without Spark."""
    number = next(_numbers)
    with (
        fragile.temporary_database(f"doomed{number}") as source,
        postgres16.temporary_database(f"doomed_ledger{number}") as ledger,
    ):
        env = PipelineEnv(source, ledger, tmp_path / "landing", f"d{number}", lake)
        env.settings = {"source": {"slot": f"penstock_{source.name}", "publication": f"penstock_{source.name}"}}
        yield env


@cache
def fork_server() -> Path:
    """Start the process whose children are killed, once, and return its address; it ends when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-fork_server-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.fork_server", str(folder / "line")],
        env=os.environ | IMPORTS,
        cwd=ROOT,
        start_new_session=True,
        stdin=subprocess.PIPE,
    )
    _kept.append(process)  # with its input open
    while not (folder / "line").exists():
        assert process.poll() is None, "the fork server ended"
        time.sleep(0.05)
    return folder / "line"


def start(env: PipelineEnv, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """Start `tests.faults.killed` on a pipeline."""
    return subprocess.Popen(
        [sys.executable, "-IS", str(FORK_SERVER), str(fork_server()), *arguments],
        env={**os.environ, "PIPELINE_ENV": env.to_json(), **IMPORTS, **environment},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(env: PipelineEnv, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `tests.faults.killed` on a pipeline and return what became of it."""
    with start(env, *arguments, **environment) as process:
        said, complained = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, said, complained)


def run_with_spark(env: PipelineEnv, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `tests.faults.killed` on a pipeline, and carry out in this process what it wants of Spark."""
    with start(env, *arguments) as process:
        try:
            while process.poll() is None:
                for wanted in env.landing.glob(f"{env.name}/runs/*/wanted"):
                    _carry_out(env, wanted)
                time.sleep(0.05)
        except BaseException:
            process.kill()
            raise
        said, complained = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, said, complained)


def _carry_out(env: PipelineEnv, wanted: Path) -> None:
    application, *arguments = json.loads(wanted.read_text())
    wanted.unlink()
    job = describe(env.ctx, application, "as the child named it", catalog_secrets(env.ctx))
    env.submit(replace(job, arguments=tuple(arguments)))
    wanted.with_name("carried-out").write_text("")

"""A verb of a pipeline killed at a step: start it, know that it died there, and ask what must hold meanwhile.

A test names a verb (`tests.faults.killed` has them), a table of kills (their steps are in `tests.faults.steps`) and an
invariant: what readers must still see, and what the next run must make of it.
"""

import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

from penstock.compare.lake_reader import lake_reader
from penstock.flow.spark_job import catalog_secrets, describe
from tests.faults.steps import Kill
from tests.pipeline_env import ROOT, PipelineEnv

FORK_SERVER = ROOT / "tests" / "faults" / "fork_server.py"
IMPORTS = {"PYTHONPATH": os.pathsep.join(str(ROOT / each) for each in ("plugins", "spark_apps", "."))}
_kept: list[subprocess.Popen[bytes]] = []


# --- kills ------------------------------------------------------------------------------------------


def killed(env: PipelineEnv, verb: str, step: str, when: str, occurrence: int = 1) -> None:
    """Kill a verb at a step; fail where it never came to that."""
    process = run(env, verb, step, when, str(occurrence))
    complaint = process.stderr.partition("nanobind: leaked")[0][-2000:]  # what DuckDB says at its end comes after it
    assert process.returncode == -signal.SIGKILL, f"{verb}: {step} was never reached: {complaint}"


def killed_unseen(
    env: PipelineEnv, verb: str, kills: Iterable[Kill | tuple[str, str]], shown: Callable[[PipelineEnv], object]
) -> None:
    """Kill a verb at one step after another; after each of them readers see what they saw."""
    before = shown(env)
    for kill in kills:
        killed(env, verb, *kill)
        assert shown(env) == before, f"readers have seen something: {verb} {kill}"


def killed_twice(
    env: PipelineEnv, verb: str, kill: Kill | tuple[str, str], between: Callable[[], object], *, seen: bool = False
) -> None:
    """Kill a verb at a step, and once more where it finds what the first one left; what readers see changes if `seen` only.

    The second one need not come to its step: it may end what the first one began.
    """
    before = snapshots(env)
    killed(env, verb, *kill)
    assert (snapshots(env) != before) == seen, f"what readers see: {verb} {kill}"
    between()
    step, when, *occurrence = kill
    run(env, verb, step, when, *(map(str, occurrence) if occurrence else "1"))


def run(env: PipelineEnv, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `tests.faults.killed` on a pipeline and return what became of it; what it wants of Spark this process carries out."""
    with start(env, *arguments, **environment) as process:
        try:
            while True:
                for wanted in env.landing.glob(f"{env.name}/runs/*/wanted"):
                    _carry_out(env, wanted)
                try:
                    said, complained = process.communicate(timeout=0.05)
                except subprocess.TimeoutExpired:
                    continue
                return subprocess.CompletedProcess(process.args, process.returncode, said, complained)
        except BaseException:
            process.kill()
            raise


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


def _carry_out(env: PipelineEnv, wanted: Path) -> None:
    application, *arguments = json.loads(wanted.read_text())
    wanted.unlink()
    job = describe(env.ctx, application, "as the child named it", catalog_secrets(env.ctx))
    env.submit(replace(job, arguments=tuple(arguments)))
    wanted.with_name("carried-out").write_text("")


# --- what readers see -------------------------------------------------------------------


def pointers(env: PipelineEnv, *, aside: bool = False) -> dict[tuple[str, str], str]:
    """Return which metadata file each name of the lake shows, with `aside` those of tables on their way or made way, too."""
    assert env.lake is not None
    rows = env.lake.database.execute(
        "select table_namespace, table_name, metadata_location from iceberg_tables "
        "where table_namespace in (%s, %s) or (%s and table_namespace like %s)",
        env.name,
        f"{env.name}.public",
        aside,
        f"{env.name}.%",
    )
    return {(namespace, table): location for namespace, table, location in rows}


def snapshots(env: PipelineEnv) -> dict[tuple[str, str], int | None]:
    """Return the snapshot that each name of the lake shows.

    What a merge prepares makes a new metadata file, too, in which the name shows what it did.
    """
    shown = {}
    with lake_reader("lake", env.ctx.catalog) as reader:
        for namespace, table in pointers(env):
            found = reader.table((*namespace.split("."), table))
            assert found is not None
            snapshot = found.table.current_snapshot()
            shown[namespace, table] = snapshot and snapshot.snapshot_id
    return shown


def cut(env: PipelineEnv) -> tuple[object, ...]:
    """Return all that a cut moves: what every name of the pipeline in the lake shows, and the cuts of the ledger."""
    return pointers(env, aside=True), env.ctx.ledger.merges.cuts(env.name, limit=1000)

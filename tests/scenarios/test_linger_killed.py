"""A merge that lingers, killed for real: the command with SIGKILL, its Spark application by itself or by SIGKILL.

The orphaned application ends because its orders are not renewed any more; the next merge finds source and lake as they should be.
"""

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.flow.verify.compare import compare
from penstock.landing import layout
from stack.servers.postgres import Server
from tests.conftest import LakeCatalog
from tests.pipeline_env import ROOT, PipelineEnv
from tests.scenarios.lingering import lingering_pipeline
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

_numbers = itertools.count(1)

CHANGES = """
update item set name = name || '+' where id % 4 = 1; update item set id = -id where id % 9 = 2;
insert into item select coalesce(max(id), 0) + 100, 'new' from item;
delete from visit where n % 5 = 3; update visit set n = n + 1000 where n % 5 = 4;
"""

Moment = Callable[[PipelineEnv, str], bool]


def idle(env: PipelineEnv, first: str) -> bool:
    """Wait for nothing: a cut is published, and its application is kept."""
    return True


def planned(env: PipelineEnv, first: str) -> bool:
    """The second plan is written; its result may be."""
    attempt = env.ctx.ledger.pipelines.get(env.name).merge_attempt
    return attempt is not None and attempt != first and env.ctx.landing.exists(layout.plan_file(env.name, attempt))


def prepared(env: PipelineEnv, first: str) -> bool:
    """The second result is written; its cut may be."""
    attempt = env.ctx.ledger.pipelines.get(env.name).merge_attempt
    return attempt is not None and attempt != first and env.ctx.landing.exists(layout.result_file(env.name, attempt))


@dataclass(frozen=True)
class Merge:
    """The command line of a merge, with the environment that leads it to this pipeline's servers."""

    words: list[str]
    environment: Mapping[str, str]
    log: Path

    def run(self) -> None:
        """Merge once."""
        subprocess.run(self.words, check=True, env=self.environment, capture_output=True)

    @contextmanager
    def lingering(self) -> Iterator[subprocess.Popen[bytes]]:
        """Run a merge that lingers, and kill it at the end where the test has not."""
        with (
            self.log.open("wb") as said,
            subprocess.Popen([*self.words, "--linger"], stdout=said, stderr=said, env=self.environment) as process,
        ):
            try:
                yield process
            finally:
                process.kill()


@pytest.fixture
def env(postgres16: Server, lake: LakeCatalog, tmp_path: Path) -> Iterator[PipelineEnv]:
    name = f"linger_killed{next(_numbers)}"
    with lingering_pipeline(postgres16, lake, tmp_path, name) as made:
        yield made


@pytest.fixture
def merge(env: PipelineEnv, shell_with_spark: dict[str, str], tmp_path: Path) -> Merge:
    file = env.file(tmp_path)
    environment = os.environ | shell_with_spark | env.connections() | {"PYTHONPATH": f"{ROOT / 'plugins'}"}
    return Merge([sys.executable, "-m", "penstock.cli", "merge", str(file)], environment, tmp_path / "lingering.log")


def first_cut(env: PipelineEnv) -> str:
    """Wait for the first cut and return its attempt."""
    wait_until(lambda: bool(env.ctx.ledger.merges.cuts(env.name)), "the first cut", seconds=300)
    return env.ctx.ledger.merges.cuts(env.name)[-1].attempt


def jvms(env: PipelineEnv) -> list[int]:
    """Return the processes of Spark applications that were submitted for this pipeline."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = process.read_bytes().split(b"\0")
        except OSError:  # it has ended meanwhile
            continue
        if b"org.apache.spark.deploy.SparkSubmit" in words and str(env.landing).encode() in b" ".join(words):
            found.append(int(process.parent.name))
    return found


@pytest.mark.parametrize("moment", [idle, planned, prepared])
def test_a_killed_task_loses_nothing_and_its_application_ends_by_itself(
    env: PipelineEnv, merge: Merge, moment: Moment
) -> None:
    with merge.lingering() as process:
        first = first_cut(env)
        env.land(CHANGES)
        wait_until(lambda: moment(env, first), moment.__name__, seconds=120)
        process.kill()
    orphans = jvms(env)
    wait_until(lambda: not jvms(env), "the orphaned application to end", seconds=240)
    env.land(CHANGES)

    merge.run()

    assert len(orphans) == 1, "the application outlived its task"
    found = compare(env.ctx)
    assert found.equal, [line for table in found.tables for line in table.lines()]
    assert found.rows > 230


def test_a_merge_whose_application_is_killed_between_two_cuts_ends_and_the_next_one_is_exact(
    env: PipelineEnv, merge: Merge
) -> None:
    with merge.lingering() as process:
        first_cut(env)
        wait_until(lambda: "keeping the Spark application" in merge.log.read_text(), "it lingers", seconds=120)
        for each in jvms(env):
            os.kill(each, signal.SIGKILL)
        assert process.wait(120) == 0, merge.log.read_text()
    env.land(CHANGES)

    merge.run()

    assert "it has ended by itself" in merge.log.read_text()
    assert env.unlike() == []

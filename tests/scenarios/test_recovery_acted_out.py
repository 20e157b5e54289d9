"""The pages of a slot that is gone, acted out: typed as they say, with Spark submitted by the command itself."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.errors import SourceError
from penstock.flow.guards import record_errors
from penstock.flow.verify.compare import compare
from stack.servers.binaries import Binaries
from stack.servers.postgres import Server
from tests.conftest import HASTY, LakeCatalog, NewServer
from tests.flow.health.conftest import KEEP, Watched
from tests.flow.health.oncall import OnCall, Step
from tests.pipeline_env import PipelineEnv
from tests.scenarios.recovery import LANDED, LOST, SHOP

_numbers = itertools.count(1)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture
def watched(
    new_server: NewServer, binaries16: Binaries, postgres16: Server, lake: LakeCatalog, tmp_path: Path
) -> Iterator[Watched]:
    """A pipeline on a server that gives slots up early, under slot health."""
    server = new_server(binaries16, {**HASTY, **KEEP})
    name = f"acted{next(_numbers)}"  # a namespace of the lake, too: what another test has made there would be foreign
    with server.temporary_database(name) as source, postgres16.temporary_database(f"{name}_ledger") as ledger:
        yield Watched(PipelineEnv(source, ledger, tmp_path / "landing", name, lake))
    server.stop()


@pytest.fixture
def oncall(watched: Watched, binaries16: Binaries, shell_with_spark: dict[str, str], tmp_path: Path) -> OnCall:
    """A person whose shell has Spark too."""
    home = tmp_path / "shell"
    home.mkdir()
    return OnCall(watched.env, home, binaries16, shell_with_spark)


def lose(watched: Watched) -> None:
    watched.noise(110)
    watched.env.sql("checkpoint")


def let_health_drop(watched: Watched) -> None:
    lose(watched)
    watched.policy(dry_run=False)


def drop(watched: Watched) -> None:
    watched.env.sql(f"select pg_drop_replication_slot('{watched.slot}')")


def consume(watched: Watched) -> None:
    watched.env.flush()
    watched.env.sql(f"select pg_replication_slot_advance('{watched.slot}', pg_current_wal_flush_lsn())")


BREAKAGES: list[tuple[str, str, Callable[[Watched], None]]] = [
    ("slot-lost", "slot-lost", lose),
    ("slot-missing", "slot-missing", drop),
    ("slot-dropped", "pipeline-halted", let_health_drop),
    ("slot-ahead", "pipeline-halted", consume),
]


@pytest.mark.parametrize(("page", "alarm", "breakage"), BREAKAGES, ids=[page for page, _, _ in BREAKAGES])
def test_a_pipeline_is_recovered_as_the_page_of_its_error_says(
    watched: Watched, oncall: OnCall, page: str, alarm: str, breakage: Callable[[Watched], None]
) -> None:
    env = watched.env
    env.sql(SHOP)
    oncall.type(Step("penstock bootstrap <pipeline>"), {})
    env.land(LANDED)
    env.sql(LOST)
    breakage(watched)
    for _ in range(2):  # the first one drops, the second one finds the pipeline halted
        watched.check()
    if page == "slot-ahead":
        with pytest.raises(SourceError, match="slot-ahead"), record_errors(env.ctx):
            env.capture()
        watched.check()
    assert watched.open_alarms()[alarm] == "critical"

    assert (watched.slot in oncall.confirm(page)) is (page != "slot-missing"), (
        "that page lists the slots that there are"
    )
    assert "lost to the stream" in oncall.do(page, "penstock recover")
    assert env.ctx.ledger.pipelines.get(env.name).era == 1, "a dry run"
    oncall.do(page, "penstock recover", "--no-dry-run")

    compared = compare(env.ctx)
    assert (compared.equal, compared.rows > 0) == (True, True)
    watched.check()
    assert watched.open_alarms() == {}

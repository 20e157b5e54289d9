"""`penstock changelog` fills an interval as its DAG does, and refuses in words what cannot be filled."""

from datetime import timedelta
from typing import Any

import pytest

from penstock.cli.options import Status
from penstock.conditions import runbook
from tests.env_fixtures import Command
from tests.pipeline_env import PipelineEnv
from tests.scenarios import changelogs
from tests.scenarios.changelogs import begin, holds, now

pytestmark = pytest.mark.spark


@pytest.fixture
def env16(env16: PipelineEnv) -> PipelineEnv:
    """Changelogs whose intervals are complete as soon as capture is past their end."""
    env16.settings["changelog"] = {"slack": 0}
    return env16


@pytest.mark.slow
def test_an_interval_filled_by_command_holds_what_the_source_did_and_filling_it_again_replaces_it(
    env16: PipelineEnv, penstock: Command
) -> None:
    slot = begin(env16)
    start = now(env16)
    env16.sql("insert into keyed (id, name) values (1, 'one'), (2, 'two')")
    env16.flush("update keyed set name = 'ONE' where id = 1; insert into keyless values ('a', 1)")
    end = now(env16)
    env16.flush("delete from keyed where id = 2")
    early = penstock("changelog", "--from", start.isoformat(), "--to", end.isoformat())
    assert (early.exit_code, "[interval-not-captured]" in early.output) == (Status.REFUSED, True), early.output
    assert env16.ctx.ledger.changelogs.fills(env16.name) == []

    assert penstock("capture").exit_code == 0
    for _ in range(2):
        done = penstock("changelog", "--from", start.isoformat(), "--to", f"{end:%FT%T.%fZ}", pipeline=env16.name)
        assert done.exit_code == 0, done.output
        assert "4 changes in 4 changelogs" in done.output

    assert holds(env16, slot, "keyed", start, end) == ["I", "I", "U"]
    assert holds(env16, slot, "keyless", start, end) == ["I"]
    (filled,) = env16.ctx.ledger.changelogs.fills(env16.name)
    assert (filled.from_time, filled.upto_time, filled.rows) == (start, end, 4)


HOUR = timedelta(hours=1)
LONG_AGO = ("2020-01-01", "2020-01-02T00:00:00+02:00")
REFUSED: list[tuple[str, tuple[str, ...], str, str]] = [
    ("the ends are exchanged", LONG_AGO[::-1], "interval-invalid", "expected an interval that begins before it ends"),
    ("it is empty", LONG_AGO[:1] * 2, "interval-invalid", "got [2020-01-01 00:00:00 UTC, 2020-01-01 00:00:00 UTC)"),
    ("it is not over", ("2020-01-01", "2999-01-01"), "interval-invalid", "expected an interval that is over"),
    ("it begins with no time", ("yesterday", "2020-01-01"), "interval-invalid", "got 'yesterday' instead"),
    ("it ends with no time", ("2020-01-01", "2020-02-30"), "interval-invalid", "got '2020-02-30' instead"),
    ("its end is nothing", ("2020-01-01", ""), "interval-invalid", "expected both ends of an interval"),
    (
        "it is older than the pipeline",
        LONG_AGO,
        "interval-gone",
        "the first interval of this length that is complete is",
    ),
]


@pytest.fixture
def captured(env16: PipelineEnv, penstock: Command) -> Command:
    """The command, for a pipeline that has captured something."""
    env16.begin("create table t (id int primary key)")
    env16.sql("insert into t values (1)")
    changelogs.flush(env16)
    return penstock


def test_an_interval_that_cannot_be_filled_is_refused_with_what_came_and_its_page_and_changes_nothing(
    env16: PipelineEnv, captured: Command
) -> None:
    before = traces(env16)
    for why, (start, end), slug, words in REFUSED:
        refused = captured("changelog", "--from", start, "--to", end)
        assert refused.exit_code == Status.REFUSED, why
        for part in (f"[{slug}]", words, f"See {runbook(slug)}."):
            assert part in refused.output, f"{why}: {refused.output}"
    assert traces(env16) == before

    for start, end in ((now(env16), now(env16) + HOUR), (now(env16) + HOUR, now(env16) + 2 * HOUR)):
        future = captured("changelog", "--from", start.isoformat(), "--to", end.isoformat())
        assert (future.exit_code, "expected an interval that is over" in future.output) == (Status.REFUSED, True)
    assert traces(env16) == before


def traces(env: PipelineEnv) -> dict[str, Any]:
    """Return what a fill could leave behind."""
    pointers = "select table_name from iceberg_tables where table_namespace like %s"
    assert env.lake is not None
    return {
        "fills": env.ctx.ledger.changelogs.fills(env.name),
        "tables": env.tables,
        "landing": env.ctx.landing.list(env.name),
        "lake": env.lake.database.execute(pointers, f"{env.name}%"),
    }


def test_an_unknown_pipeline_and_a_missing_option_are_named(env16: PipelineEnv, penstock: Command) -> None:
    span = ("--from", LONG_AGO[0], "--to", LONG_AGO[1])
    unknown = penstock("changelog", *span, pipeline="shopp")
    assert (unknown.exit_code, "[config-invalid]" in unknown.output) == (Status.REFUSED, True)
    assert f"got 'shopp'; expected one of {env16.name}" in unknown.output

    unmade = penstock("changelog", *span)
    assert (unmade.exit_code, "[ledger-not-migrated]" in unmade.output) == (Status.REFUSED, True), unmade.output
    env16.ctx.ledger.migrate()
    unmade = penstock("changelog", *span)
    assert (unmade.exit_code, "[not-bootstrapped]" in unmade.output) == (Status.REFUSED, True), unmade.output

    half = penstock("changelog", *span[:2])
    assert half.exit_code == Status.USAGE
    assert "Missing option '--to'" in half.output

"""`penstock health` tells what slot health would do, and changes nothing."""

import json

import psycopg
import pytest
from typer.testing import CliRunner

from penstock.cli.app import app
from penstock.cli.options import Status
from tests.flow.health.conftest import Watched


@pytest.fixture
def environment(watched: Watched, monkeypatch: pytest.MonkeyPatch, tmp_path) -> str:
    """The pipeline's file and connections, as a shell has them; returns the file."""
    for name, value in watched.env.connections().items():
        monkeypatch.setenv(name, value)
    return str(watched.env.file(tmp_path))


def test_the_report_is_for_people_or_as_plain_data_for_tools(watched: Watched, environment: str) -> None:
    watched.noise(20)

    shown = CliRunner().invoke(app, ["health", environment])
    plain = CliRunner().invoke(app, ["health", environment, "--json"])

    assert (shown.exit_code, plain.exit_code) == (Status.FOUND, Status.FOUND), shown.output + plain.output
    assert "slot-retained" in shown.stdout
    assert {alarm["slug"] for alarm in json.loads(plain.stdout)["alarms"]} == {"slot-retained", "slot-unread"}
    assert watched.open_alarms() == {}
    assert watched.env.ctx.ledger.health.slot_samples(watched.env.name, watched.slot) == []


def test_the_statement_of_the_alarm_about_refused_updates_lets_the_application_go_on(watched: Watched) -> None:
    env = watched.env
    env.sql("alter table t replica identity nothing")
    with pytest.raises(psycopg.Error, match="does not have a replica identity"):
        env.sql("update t set id = id")
    checked = watched.check()
    assert watched.open_alarms()["no-usable-identity"] == "critical"

    (finding,) = (each for each in checked.findings if each.slug == "no-usable-identity")
    env.sql(finding.next.removeprefix("run: ").split("; or")[0])
    env.sql("update t set id = id; delete from t")
    watched.check()
    assert "no-usable-identity" not in watched.open_alarms()


def test_an_event_trigger_that_is_asked_for_is_an_alarm_until_the_printed_statement_has_run(
    watched: Watched, environment: str
) -> None:
    env = watched.env
    env.settings["source"] = {**env.settings.get("source", {}), "ddl_trigger": True}
    watched.check()
    assert watched.open_alarms()["ddl-trigger-missing"] == "warn"

    printed = CliRunner().invoke(app, ["ddl-trigger", environment])
    env.sql(printed.stdout)
    watched.check()
    assert "ddl-trigger-missing" not in watched.open_alarms()

    removing = CliRunner().invoke(app, ["ddl-trigger", environment, "--remove"])
    env.sql(removing.stdout)
    watched.check()
    assert watched.open_alarms()["ddl-trigger-missing"] == "warn"

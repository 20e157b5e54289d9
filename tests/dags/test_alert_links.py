"""What a person on call receives of runs that Airflow made: by HTTP and by mail, with links that Airflow's own server answers."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.conditions import ALARMS
from stack import ports
from tests.airflow_ui import BASE, Get, broken, links, viewer
from tests.dags.test_runs import begin, pause, run, states
from tests.flow.health.alert_receivers import http_receiver, smtp_receiver
from tests.pipeline_env import PipelineEnv


@pytest.fixture
def get(airflow_home: Path) -> Iterator[Get]:
    """A function that asks Airflow's API server, with our plugin, as somebody who may only look."""
    with viewer() as get:
        yield get


@pytest.mark.slow
def test_alerts_arrive_by_http_and_mail_their_links_lead_somewhere_and_they_are_closed(
    deployed: PipelineEnv, get: Get, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(deployed)
    run("merge", deployed)
    run("slot_health", deployed)
    for verb in ("capture", "merge", "slot_health"):
        run(verb, deployed)
        pause(deployed, verb, False)
    with http_receiver() as hook, smtp_receiver(ports.choose()) as mailbox:
        web = f"json://127.0.0.1:{hook.port}/"
        mail = f"mailto://127.0.0.1:{mailbox.port}/?smtp=127.0.0.1&from=penstock@example.com&to=oncall@example.com"
        monkeypatch.setenv("AIRFLOW_CONN_PEOPLE", json.dumps({"conn_type": "generic", "password": f"{web}\n{mail}"}))
        with (tmp_path / "pipeline.yaml").open("a") as file:
            file.write("health: {warn: {channels: [people]}, critical: {channels: [people]}}\n")
        deployed.ctx.ledger.pipelines.halt(deployed.name, slug="source-changed", reason="for this test")
        assert states(run("capture", deployed)) == {"windows": "failed"}
        run("slot_health", deployed)
        opened = list(hook.posts)

        deployed.ctx.ledger.pipelines.resume(deployed.name)
        assert states(run("capture", deployed)) == {"windows": "success"}
        run("slot_health", deployed)

    reported = {post["title"].split()[2]: post["message"] for post in opened}
    assert "pipeline-halted" in reported
    assert "capture-failing" in json.dumps(reported), "by itself, or as what follows"
    closed = {post["title"].split()[2] for post in hook.posts if "closed" in post["title"]}
    assert closed == set(reported)
    assert sorted(subject for subject, _ in mailbox.mails) == sorted(post["title"] for post in hook.posts)

    assert {"runbook", "page"} <= {name for text in reported.values() for name in links(text)}
    assert [broken(get, text) for text in reported.values()] == [{}] * len(reported)


@pytest.mark.slow
def test_the_links_of_a_failed_run_name_a_run_and_a_task_that_airflow_knows(deployed: PipelineEnv, get: Get) -> None:
    from penstock.flow.health.links import Links  # noqa: PLC0415

    begin(deployed)
    deployed.ctx.ledger.pipelines.halt(deployed.name, slug="source-changed", reason="for this test")
    failed = run("capture", deployed)
    outcomes = deployed.ctx.ledger.outcomes.all(deployed.name)
    (ended,) = [each for each in outcomes if each.failing_since is not None]
    dag_id = f"{deployed.name}.{ended.dag}"

    assert ended.run_id == failed.run_id
    to = Links(BASE)
    for url in (to.dag(dag_id), to.run(dag_id, ended.run_id), to.log(dag_id, ended.run_id, ended.task)):
        answer = get(url)
        assert (answer.status_code, "text/html" in answer.headers["content-type"]) == (200, True), url
        known = url.removeprefix(BASE).replace("/runs/", "/dagRuns/").replace("/tasks/", "/taskInstances/")
        assert get(f"{BASE}/api/v2{known}").status_code == 200, "what the UI's page asks for"
    unknown = to.run(dag_id, "nobody").removeprefix(BASE).replace("/runs/", "/dagRuns/")
    assert get(f"{BASE}/api/v2{unknown}").status_code == 404


@pytest.mark.slow
def test_the_runbook_of_every_alarm_is_a_page_of_the_plugin(get: Get) -> None:
    from penstock.flow.health.links import Links  # noqa: PLC0415

    assert [slug for slug in ALARMS if get(Links(BASE).runbook(slug)).status_code != 200] == []

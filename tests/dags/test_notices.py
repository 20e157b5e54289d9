"""A failing slot_health DAG sends a notice of its own, whatever else is down: the slot is not watched then.

The run is one of Airflow's; its callbacks run as in production, by the code of the DAG processor, from the request that
the scheduler would have sent: `dag.test()` itself cannot call a notifier (its DAG is a serialized one).
"""

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from stack import ports
from tests.dags import test_runs as runs
from tests.dags.test_dags import ROOT
from tests.dags.test_runs import begin, states, watch
from tests.flow.health.alert_receivers import Hook, Mailbox, http_receiver, smtp_receiver
from tests.pipeline_env import PipelineEnv

TOKEN = "t0ken-of-the-url"
ROW = "value-of-a-row"


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hook]:
    """The channel `hook`: an HTTP receiver whose URL holds a secret."""
    with http_receiver() as hook:
        connect(monkeypatch, "hook", f"json://reader:{TOKEN}@127.0.0.1:{hook.port}/")
        yield hook


@pytest.fixture
def down(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hook]:
    """The channel `down`: a service that refuses all it gets."""
    with http_receiver() as hook:
        hook.refusing = True
        connect(monkeypatch, "down", f"json://reader:{TOKEN}@127.0.0.1:{hook.port}/")
        yield hook


@pytest.fixture
def mailbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mailbox]:
    """The channel `people`: a mail server."""
    with smtp_receiver(ports.choose()) as box:
        mail = f"mailto://127.0.0.1:{box.port}/?smtp=127.0.0.1&from=penstock@example.com&to=oncall@example.com"
        connect(monkeypatch, "people", mail)
        yield box


def connect(monkeypatch: pytest.MonkeyPatch, name: str, url: str) -> None:
    value = {"conn_type": "generic", "password": url}
    monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", json.dumps(value))


def run(env: PipelineEnv) -> Any:
    """Run slot_health once, and its callbacks if it failed; return the run."""
    from airflow.models.dagrun import DagRun  # noqa: PLC0415  # after the throw-away home is set
    from airflow.utils.session import create_session  # noqa: PLC0415

    done = runs.run("slot_health", env)
    if failed := [task for task in done.get_task_instances() if task.state == "failed"]:
        with create_session() as session:
            request = session.get(DagRun, done.id).produce_dag_callback(
                None, success=False, relevant_ti=max(failed, key=lambda task: task.end_date), reason="task_failure"
            )
        process(request)
    return done


def process(request: Any) -> None:
    """Carry out a request for callbacks as the DAG processor does."""
    from airflow.dag_processing import processor  # noqa: PLC0415
    from airflow.dag_processing.dagbag import DagBag  # noqa: PLC0415
    from structlog.testing import CapturingLogger  # noqa: PLC0415

    bag = DagBag(dag_folder=ROOT / "dags" / "slot_health.py", bundle_name="dags-folder")
    log: Any = CapturingLogger()
    processor._execute_callbacks(bag, [request], log)
    assert [call.kwargs for call in log.calls if call.method_name == "exception"] == [], "each callback has ended well"


def secrets(env: PipelineEnv) -> list[str]:
    """Name what must be in no text that leaves us."""
    return [TOKEN, ROW, env.source.server.password, str(env.source.server.port), "127.0.0.1", "postgres"]


def test_a_failing_slot_health_sends_all_critical_channels_what_a_person_needs_at_night(
    deployed: PipelineEnv,
    hook: Hook,
    mailbox: Mailbox,
    down: Hook,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example.com/")
    deployed.sql(f"create table t (id int primary key, name text); insert into t values (1, '{ROW}')")
    watch(deployed, tmp_path, "{critical: {channels: [down, nowhere, hook, people]}}")
    monkeypatch.delenv("AIRFLOW_CONN_PENSTOCK_LEDGER")

    failed = run(deployed)

    assert states(failed)["check"] == "failed"
    ((post,), ((subject, mail),)) = (hook.posts, mailbox.mails)
    name = f"{deployed.name}.slot_health"
    assert post["title"] == f"[penstock] CRITICAL: dag-failed {name} ({deployed.name})"
    assert post["message"].splitlines() == [
        f"what: {name} failed in {failed.run_id}: task_failure.",
        "level: critical",
        "next: until a run succeeds the slot is not watched, and the WAL that it keeps may fill the source's disk.",
        "runbook: https://airflow.example.com/cdc/runbooks/dag-failed",
        f"run: https://airflow.example.com/dags/{name}/runs/{quote(failed.run_id)}",
        f"page: https://airflow.example.com/plugin/cdc#{deployed.name}",
    ]
    assert post["type"] == "failure"
    assert (ROOT / "docs" / "runbooks" / "dag-failed.md").is_file()
    assert subject == post["title"]
    assert f"what: {name} failed in {failed.run_id}: task_failure" in mail
    assert down.posts == []
    said = caplog.text + "".join(capfd.readouterr())
    assert f"{name} failed in {failed.run_id}: task_failure; see docs/runbooks/dag-failed.md" in said
    assert "expected channel down to take an alert, but its JSON did not" in said
    assert "expected channel nowhere to be an Airflow connection with apprise URLs" in said
    reported = json.dumps(hook.posts) + subject + mail
    assert [secret for secret in secrets(deployed) if secret in reported] == []
    assert [secret for secret in (TOKEN, ROW, deployed.source.server.password) if secret in said] == []


def test_the_notice_leads_to_where_the_policy_says_the_runbooks_are(
    deployed: PipelineEnv, hook: Hook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_PENSTOCK_LEDGER")
    watch(deployed, tmp_path, '{critical: {channels: [hook]}, runbooks: "https://wiki.example.com/penstock/"}')

    run(deployed)

    (post,) = hook.posts
    assert "runbook: https://wiki.example.com/penstock/dag-failed.md\n" in post["message"]


def test_a_source_that_cannot_be_asked_is_sent_as_its_alarm_and_not_as_a_failed_run_too(
    deployed: PipelineEnv, hook: Hook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(deployed)
    watch(deployed, tmp_path, "{critical: {channels: [hook]}}")
    right = os.environ["AIRFLOW_CONN_PENSTOCK_SOURCE"]
    monkeypatch.setenv("AIRFLOW_CONN_PENSTOCK_SOURCE", json.dumps(json.loads(right) | {"password": "s3cret"}))
    failed = [run(deployed) for _ in range(2)]
    assert [states(each)["check"] for each in failed] == ["failed", "failed"]
    assert [post["title"].split()[2] for post in hook.posts] == ["source-unreachable"]

    monkeypatch.setenv("AIRFLOW_CONN_PENSTOCK_SOURCE", right)
    assert states(run(deployed))["check"] == "success"
    monkeypatch.delenv("AIRFLOW_CONN_PENSTOCK_LEDGER")
    run(deployed)

    assert [post["title"].split(" ", 1)[1].split(" (")[0] for post in hook.posts[1:]] == [
        "closed: source-unreachable source",
        f"CRITICAL: dag-failed {deployed.name}.slot_health",
    ], "that is other news"


@pytest.mark.slow
def test_an_outage_whose_end_was_not_sent_does_not_hold_back_other_alerts(
    deployed: PipelineEnv, hook: Hook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(deployed)
    watch(deployed, tmp_path, "{critical: {channels: [hook]}}")
    right = os.environ["AIRFLOW_CONN_PENSTOCK_SOURCE"]
    monkeypatch.setenv("AIRFLOW_CONN_PENSTOCK_SOURCE", json.dumps(json.loads(right) | {"password": "s3cret"}))
    run(deployed)
    assert [post["title"].split()[2] for post in hook.posts] == ["source-unreachable"]
    monkeypatch.setenv("AIRFLOW_CONN_PENSTOCK_SOURCE", right)
    hook.refusals = 1  # the end of the outage

    assert states(run(deployed)) == {"check": "success", "drain": "skipped", "delivered": "failed"}

    assert [post["title"].split()[2] for post in hook.posts] == ["source-unreachable", "dag-failed"]


@pytest.mark.slow
def test_an_alert_that_a_channel_did_not_take_fails_the_run_and_the_other_channels_hear_of_it(
    deployed: PipelineEnv, hook: Hook, down: Hook, tmp_path: Path
) -> None:
    begin(deployed)
    runs.run("capture", deployed)
    runs.pause(deployed, "capture", False)
    watch(deployed, tmp_path, "{drain: false, warn: {bytes: 1MiB, channels: [down]}, critical: {channels: [hook]}}")

    assert states(run(deployed))["delivered"] == "failed"

    reported = [post["title"].split()[2] for post in hook.posts]
    assert (reported.count("dag-failed"), "slot-retained" in reported) == (1, False)


@pytest.mark.parametrize("reason", ["timed_out", "task_failure"])
def test_the_dag_processor_sends_the_notice_of_a_run_of_which_nothing_but_its_name_is_left(
    deployed: PipelineEnv, hook: Hook, tmp_path: Path, reason: str
) -> None:
    from airflow.callbacks.callback_requests import DagCallbackRequest  # noqa: PLC0415  # after the home is set

    begin(deployed)
    watch(deployed, tmp_path, "{critical: {channels: [hook]}}")
    request = DagCallbackRequest(
        filepath="slot_health.py",
        dag_id=f"{deployed.name}.slot_health",
        run_id="scheduled__2026-11-21T03:00:00+00:00",
        bundle_name="dags-folder",
        bundle_version=None,
        msg=reason,
    )
    process(request)

    (post,) = hook.posts
    what, *_ = post["message"].splitlines()
    assert what == f"what: {deployed.name}.slot_health failed in {request.run_id}: {reason}."
    (event, *_) = deployed.ctx.ledger.events.all(deployed.name)
    assert (event.slug, event.message) == ("dag-failed", what.removeprefix("what: ").removesuffix("."))

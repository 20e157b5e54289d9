"""Alerts on their way to people: apprise URLs of Airflow connections, and gauges for StatsD.

A channel is the id of a connection whose password holds the URLs; `<id>:<tag>` takes those of one tag. They are secrets: a
failure names the kind of service and the channel, nothing else. Airflow shows and exports the extra of a connection in clear, so URLs
are not taken from there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from airflow.sdk import BaseNotifier

from penstock.conditions import CONDITIONS
from penstock.config.model import Pipeline
from penstock.config.policy import Health
from penstock.errors import ConfigError, PenstockError
from penstock.flow.health.links import Links
from penstock.orchestration.links import base
from penstock.orchestration.tasks import find_context

if TYPE_CHECKING:
    from penstock.flow.health.alerts import Alert, Delivery
    from penstock.ledger.records import CutRecord, TableWork

_SLUG = "connection-missing"
_ADDRESS = re.compile(r"https?://[^\s<]+")
_URLS = 'its URLs in the password: one a line, or JSON such as [{"path": "<url>", "tag": "mail"}]'
_UNWATCHED = "until a run succeeds the slot is not watched, and the WAL that it keeps may fill the source's disk"
_FAILURE = "failure"
_TYPES = {"warn": "warning", "critical": _FAILURE}
"""apprise's own words for the kinds of a notification."""


def deliver(alert: Alert) -> Delivery:
    """Send an alert on all its channels; what failed is returned, not raised."""
    kind = "success" if alert.happening == "closed" else _TYPES[alert.level]
    body = replace(alert, links=replace(alert.links, base=base())).text()
    return send(alert.channels, alert.title, body, kind)


def send(channels: tuple[str, ...], title: str, body: str, kind: str = _FAILURE) -> Delivery:
    """Send a text to every service of these channels, each by itself, so that one that is down stops no other."""
    from penstock.flow.health.alerts import Delivery

    taken, failures = 0, []
    for channel in channels:
        try:
            found = _services(channel)
        except ConfigError as error:
            failures.append(error.message)
            continue
        for service in found:
            if service.notify(title=title, notify_type=kind, **_form(service, body)):
                taken += 1
            else:
                failures.append(f"expected channel {channel} to take an alert, but its {service.service_name} did not")
    return Delivery(taken, tuple(failures))


def _services(channel: str) -> list[Any]:
    """Return apprise's services of a channel `<connection>` or `<connection>:<tag>`; raises ConfigError without a secret."""
    import apprise  # it takes long, and every DAG file would pay for it

    conn_id, _, tag = channel.partition(":")
    box = apprise.Apprise()
    for url, tags in _urls(conn_id):
        box.add(url, tag=tags)
    found = list(box.find(tag or "all"))
    if not found:
        raise ConfigError(_SLUG, f"expected channel {channel} to hold an apprise URL that is understood, got none")
    return found


def _form(service: Any, text: str) -> dict[str, str]:
    """Return a text as a service is to take it: a mail's lines and addresses as HTML has them, else plain text.

    Without a word about its form apprise sends text as a mail's HTML, where all lines are one.
    """
    from apprise import NotifyFormat
    from apprise.plugins.email import NotifyEmail

    if not isinstance(service, NotifyEmail):
        return {"body": text, "body_format": NotifyFormat.TEXT}
    lines = (_ADDRESS.sub(r'<a href="\g<0>">\g<0></a>', escape(line)) for line in text.splitlines())
    return {"body": "<br>".join(lines), "body_format": NotifyFormat.HTML}


def _urls(conn_id: str) -> list[tuple[str, str | list[str] | None]]:
    """Return the URLs of a connection with their tags; raises ConfigError("connection-missing")."""
    found = _connection(conn_id)
    if "config" in (found.extra_dejson or {}):
        raise ConfigError(
            _SLUG,
            f"expected channel {conn_id} to have {_URLS}; got them in its extra, which Airflow shows in clear. Move the value "
            f"of config into the password: airflow connections delete {conn_id}, then airflow connections add {conn_id} "
            "--conn-type generic --conn-password '<the value of config>'; and renew the secrets in them",
        )
    text = (found.password or "").strip()
    if not text:
        raise ConfigError(_SLUG, f"expected channel {conn_id} to have {_URLS}; got an empty password")
    if text[0] not in "[{":
        return [(line.strip(), None) for line in text.splitlines() if line.strip()]
    try:
        given = json.loads(text)
        listed = given if isinstance(given, list) else [given]
        return [(str(each["path"]), each.get("tag")) for each in listed]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ConfigError(_SLUG, f"expected channel {conn_id} to have {_URLS}; got JSON of another form") from None


def _connection(conn_id: str) -> Any:
    from airflow.sdk import BaseHook

    try:
        return BaseHook.get_connection(conn_id)
    except Exception as error:  # Airflow raises different classes per secrets backend
        raise ConfigError(
            _SLUG, f"expected channel {conn_id} to be an Airflow connection with apprise URLs: {type(error).__name__}"
        ) from None


def send_info(pipeline: Pipeline, title: str, body: str) -> Delivery:
    """Send a text to those who hear of what needs nobody, with the page."""
    page = links(pipeline.health).page(pipeline.name)
    return send(tuple(pipeline.health.info.channels), title, f"{body}\npage: {page}", "info")


def links(policy: Health) -> Links:
    """Return what leads to the page, to runbooks and to Airflow's UI."""
    return Links(base(), policy.runbooks)


def send_gauges(pipeline: str, numbers: dict[str, float]) -> None:
    """Send gauges by Airflow's own metrics; nothing happens where it has none."""
    from penstock.orchestration.airflow_internals import stats

    for name, value in numbers.items():
        stats.gauge(name, value, tags={"pipeline": pipeline})


def _count(what: str, counts: Mapping[str, int], **tags: str) -> None:
    """Count by Airflow's own metrics; nothing happens where it has none."""
    from penstock.orchestration.airflow_internals import stats

    for name, count in counts.items():
        stats.incr(f"penstock.{what}.{name}", count, tags=tags)


def send_cut(pipeline: str, cut: CutRecord, moved: Iterable[TableWork]) -> None:
    """Send the counts of a cut's tables: what its merge met besides rows, its changes by kind, and its seconds."""
    for table in cut.tables:
        _count("merge", table.get("counts", {}), pipeline=pipeline, table=f"{table['schema']}.{table['name']}")
    for each in moved:
        counts = {kind: each.changes[kind] for kind in ("inserts", "updates", "deletes")}
        counts["milliseconds"] = round(1000 * each.seconds)
        _count("merge", counts, pipeline=pipeline, table=each.qualified)


def send_capture(pipeline: str, summary: Mapping[str, Any]) -> None:
    """Count what a run of capture landed, and the milliseconds that its windows took."""
    counts = {name: summary[name] for name in ("windows", "changes", "transactions", "bytes")}
    _count("capture", {**counts, "milliseconds": round(1000 * summary["seconds"])}, pipeline=pipeline)


def send_task(dag_id: str, task_id: str, *, seconds: float, cpu_seconds: float) -> None:
    """Count the time of a task that has ended, and the CPU of its process and of those that it has waited for."""
    counts = {"milliseconds": round(1000 * seconds), "cpu_milliseconds": round(1000 * cpu_seconds)}
    _count("task", counts, dag_id=dag_id, task_id=task_id)


class AlertNotice(BaseNotifier):
    """Alert the critical channels that a run of slot health failed, without asking the ledger or the source."""

    template_fields = ()

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__()
        self.pipeline = pipeline

    def notify(self, context: Any) -> None:
        """Send the notice, unless an alarm has sent the same; a channel that does not take it is named in the log."""
        from penstock.flow.health.alarms import is_source_alerted
        from penstock.flow.health.alerts import unrecorded
        from penstock.ledger.health import Finding

        name = self.pipeline.name
        with suppress(PenstockError):  # then no alert was sent
            if is_source_alerted(find_context(name)):
                return
        numbers = {"dag": f"{name}.slot_health", "run_id": context.get("run_id")}
        what = failed_run(name, "slot_health", context)
        found = Finding("dag-failed", f"{name}.slot_health", "critical", what, _UNWATCHED, numbers)
        for failure in deliver(unrecorded(name, found, self.pipeline.health, datetime.now(UTC))).failures:
            self.log.error(
                "%s %s; see docs/runbooks/alert-undelivered.md", CONDITIONS["alert-undelivered"].meaning, failure
            )


def failed_run(pipeline: str, verb: str, context: Any) -> str:
    """Say which run of a DAG failed, and why as far as Airflow knows; what a killed one leaves holds the run's id only."""
    return (
        f"{pipeline}.{verb} failed in {context.get('run_id', 'unknown run')}: {context.get('reason', 'task failure')}"
    )


_PATIENCE_SECONDS = 10.0


def beat(pipeline: Pipeline) -> tuple[str, ...]:
    """Ping the heartbeat of a pipeline, if it has one; return what went wrong, without the address."""
    wanted = pipeline.health.heartbeat
    if wanted is None:
        return ()
    if "://" not in wanted:
        return send((wanted,), f"[penstock] alive: {pipeline.name}", "slot health has run and is well", "info").failures
    try:
        with urlopen(Request(wanted, method="POST", data=b""), timeout=_PATIENCE_SECONDS):  # noqa: S310  # https? is checked
            return ()
    except HTTPError as error:
        problem = f"status {error.code}"
    except (URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        problem = type(reason).__name__
    return (f"expected the address of health.heartbeat to take a ping, got {problem}",)

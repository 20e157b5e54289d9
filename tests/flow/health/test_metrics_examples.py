"""The shipped dashboard and alert rules ask for metrics that are sent, under the names that the real exporter gives them."""

import json
import re
import shutil
import socket
import subprocess
from dataclasses import replace
from urllib.request import urlopen

import pytest
import yaml

from penstock.flow.health import report
from stack import ports
from stack.airflow.airflow_server import metrics
from stack.errors import StackError
from tests.flow.health.cases import OWN, verdict
from tests.flow.health.test_lake_rules import LAKE
from tests.pipeline_env import ROOT
from tests.waiting import wait_until

EXAMPLES = ROOT / "docs" / "examples" / "metrics"
DASHBOARD, RULES = EXAMPLES / "grafana-dashboard.json", EXAMPLES / "prometheus-rules.yml"
COUNTED = {
    "capture": ("windows", "changes", "transactions", "bytes", "milliseconds"),
    "merge": ("inserts", "updates", "deletes", "milliseconds"),
    "task": ("milliseconds", "cpu_milliseconds"),
}
"""The counters, as the test of their delivery spells them on the wire."""


def sent() -> list[str]:
    """The lines that Airflow sends to StatsD for one run of everything."""
    gauges = report.gauges(verdict(replace(OWN, safe_wal_size=1), lake=LAKE))
    lines = [f"airflow.{name},pipeline=shop:{value}|g" for name, value in gauges.items()]
    for part, names in COUNTED.items():
        tags = "dag_id=shop.merge,task_id=spark" if part == "task" else "pipeline=shop,table=public.t"
        lines += [f"airflow.penstock.{part}.{name},{tags}:5|c" for name in names]
    return lines


def asked() -> set[str]:
    """The metrics that the dashboard and the rules name."""
    text = DASHBOARD.read_text() + RULES.read_text()
    return set(re.findall(r"airflow_penstock_\w+", text))


def test_the_dashboard_and_the_rules_ask_only_for_what_is_sent() -> None:
    names = {line.partition(",")[0].replace(".", "_") for line in sent()}

    assert len(asked()) > 15
    assert sorted(asked() - names) == []


def test_every_panel_has_a_place_of_its_own_and_every_rule_a_severity() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    (group,) = yaml.safe_load(RULES.read_text())["groups"]

    assert len({(each["gridPos"]["x"], each["gridPos"]["y"]) for each in panels}) == len(panels)
    assert {each["labels"]["severity"] for each in group["rules"]} == {"warning", "critical"}


def program(name: str, how: str) -> str:
    """The path of a program that `make test-all` needs."""
    found = shutil.which(name)
    assert found, f"expected the program {name}, found none; install it: {how}"
    return found


@pytest.mark.slow
def test_the_exporter_gives_every_metric_under_the_name_that_is_asked_for() -> None:
    web, statsd = ports.choose(), ports.choose()
    listen = [
        f"--web.listen-address=127.0.0.1:{web}",
        f"--statsd.listen-udp=127.0.0.1:{statsd}",
        "--statsd.listen-tcp=",
    ]
    exporter_program = program("statsd_exporter", "go install github.com/prometheus/statsd_exporter@latest")
    with subprocess.Popen([exporter_program, *listen], stderr=subprocess.DEVNULL) as exporter:
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:

                def names() -> set[str]:
                    for line in sent():
                        out.sendto(line.encode(), ("127.0.0.1", statsd))
                    try:
                        with urlopen(f"http://127.0.0.1:{web}/metrics") as answer:
                            return set(re.findall(r"^(airflow_penstock_\w+)\{", answer.read().decode(), re.MULTILINE))
                    except OSError:  # it has not begun to listen
                        return set()

                wait_until(lambda: asked() <= names(), "the exporter to show every metric", pause=0.3)
                assert asked() <= names()
        finally:
            exporter.terminate()


@pytest.mark.slow
def test_prometheus_takes_the_rules() -> None:
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    command = [program("promtool", "apt-get install prometheus"), "check", "rules", str(RULES)]

    said = subprocess.run(command, check=False, capture_output=True, text=True)

    assert said.returncode == 0, said.stderr
    assert f"SUCCESS: {len(group['rules'])} rules found" in said.stdout


def test_the_local_stack_sends_metrics_where_it_is_told_to() -> None:
    assert metrics(None) == {}
    assert metrics("127.0.0.1:9125")["AIRFLOW__METRICS__STATSD_PORT"] == "9125"
    with pytest.raises(StackError, match="STATSD"):
        metrics("9125")

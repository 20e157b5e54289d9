"""Airflow's own backfill fills changelogs: scheduler, sensors, Spark, several runs at once, before capture and again."""

import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from rich.console import Console

from penstock.compare.lake_reader import lake_reader
from penstock.config.connections import Connection
from stack import lifecycle, ports
from stack.paths import Project
from stack.progress import Progress
from stack.servers import databases
from stack.spark.spark_conf import CATALOG
from stack.stack import Stack
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

HERE = Project.here()
MINUTE = timedelta(minutes=1)
PIPELINE = """
name: tiny
source: {adopt: true, reader_connection: penstock_reader}
tables: {include: ["tiny.*"]}
capture: {schedule: null}
merge: {schedule: null}
changelog: {schedule: "* * * * *", slack: 1s}
"""
SOURCE = f"""
create schema tiny;
create table tiny.t (id int primary key, note text);
grant usage on schema tiny to {databases.READER};
grant select on tiny.t to {databases.READER};
create publication penstock_tiny for table tiny.t with (publish_via_partition_root = true);
"""


@pytest.fixture(scope="module")
def stack(servers_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack with our DAGs and a pipeline of its own, whose intervals are minutes."""
    quiet = Progress(Console(quiet=True))
    lifecycle.set_up(HERE, quiet)
    root = tmp_path_factory.mktemp("backfill")
    for shared in ("plugins", "bin", "dags", "spark_apps"):
        (root / shared).symlink_to(HERE.root / shared)
    (root / "include" / "pipelines").mkdir(parents=True)
    (root / "include" / "pipelines" / "tiny.yaml").write_text(PIPELINE)
    project = Project(root, servers_home / "backfill")
    project.local.mkdir()
    project.write_ports({name: ports.choose() for name in ("source", "control", "airflow")})
    (project.local / "jars").symlink_to(HERE.jars)
    yield lifecycle.up(project, quiet)
    lifecycle.clean(project, quiet)


def run(stack: Stack, verb: str) -> None:
    api = stack.airflow.api
    api.wait_for_dag(f"tiny.{verb}")
    api.unpause(f"tiny.{verb}")
    api.wait_for_run(f"tiny.{verb}", api.trigger(f"tiny.{verb}"))


def work(source: psycopg.Connection[Any], minutes: int) -> Counter[datetime]:
    """Commit changes away from the minutes' ends; return how many each whole minute got."""
    done: Counter[datetime] = Counter()
    key = 0
    begin = datetime.now(UTC).replace(second=0, microsecond=0) + MINUTE
    while (now := datetime.now(UTC)) < begin + minutes * MINUTE:
        if now >= begin and 10 < now.second < 50:
            key += 1
            source.execute("insert into tiny.t values (%s, 'new')", (key,))
            source.execute("update tiny.t set note = 'changed' where id = %s", (key,))
            done[now.replace(second=0, microsecond=0)] += 2
        time.sleep(5)
    return done


def backfill(stack: Stack, minutes: list[datetime], **options: Any) -> list[dict[str, Any]]:
    """Create a backfill as the UI does; return its runs."""
    api = stack.airflow.api
    body = {"dag_id": "tiny.changelog", "from_date": min(minutes).isoformat(), "to_date": max(minutes).isoformat()}
    api.call("POST", "backfills", json=body | {"dag_run_conf": {}, "max_active_runs": 3} | options)
    return [each for each in api.runs("tiny.changelog") if each["run_type"] == "backfill"]


def ended(stack: Stack, runs: list[dict[str, Any]]) -> None:
    """Wait for the runs, then for the scheduler to see that the backfill is over: until then there can be no other."""
    api = stack.airflow.api
    for each in runs:
        api.wait_for_run("tiny.changelog", each["dag_run_id"])

    def over() -> bool:
        found = api.call("GET", "backfills", params={"dag_id": "tiny.changelog"})["backfills"]
        return all(each["completed_at"] for each in found)

    wait_until(over, "the scheduler sees that the backfill is over", seconds=300, pause=1)


def logged(stack: Stack) -> Counter[datetime]:
    """Return how many changes of each minute a reader finds, by PyIceberg."""
    control = stack.control
    found = Connection(
        "c", ports.LOOPBACK, control.port, databases.PENSTOCK, stack.secrets.penstock, databases.PENSTOCK
    )
    with lake_reader(CATALOG, found) as lake:
        table = lake.catalog.load_table("tiny.tiny.t__changelog")
        rows = table.scan(selected_fields=("committed_at",)).to_arrow()
    return Counter(time_.replace(second=0, microsecond=0) for time_ in rows["committed_at"].to_pylist())


def states(stack: Stack, each: dict[str, Any]) -> dict[str, str | None]:
    tasks = stack.airflow.api.task_instances("tiny.changelog", each["dag_run_id"])
    return {task["task_id"]: task["state"] for task in tasks}


def test_a_backfill_waits_for_capture_fills_each_interval_once_and_may_be_repeated(stack: Stack) -> None:
    with psycopg.connect(stack.source_dsn(), autocommit=True) as source:
        source.execute(SOURCE.encode())
        run(stack, "bootstrap")
        done = work(source, 3)
    assert len(done) == 3
    api = stack.airflow.api
    api.wait_for_dag("tiny.changelog")
    api.unpause("tiny.changelog")

    runs = backfill(stack, list(done))
    assert len(runs) == 3
    waiting = {"up_for_reschedule"}
    wait_until(
        lambda: {states(stack, each)["wait"] for each in runs} == waiting,
        "all runs wait for capture",
        seconds=300,
        pause=1,
    )
    run(stack, "capture")
    ended(stack, runs)
    assert {minute: logged(stack)[minute] for minute in done} == done

    again = backfill(stack, list(done), reprocess_behavior="completed", run_backwards=True)
    assert len(again) == 3, "finished runs were taken up again"
    ended(stack, again)
    assert {minute: logged(stack)[minute] for minute in done} == done

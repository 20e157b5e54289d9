"""The DAG files: they import, there is one DAG per pipeline and verb, and each is its own runbook."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.config.dags import WHEN

ROOT = Path(__file__).parents[2]
VERBS = tuple(WHEN)


def load(verb: str) -> dict[str, object]:
    """Execute a DAG file as Airflow does and return its DAGs by id."""
    from airflow.sdk import DAG  # noqa: PLC0415  # after the throw-away home is set

    spec = importlib.util.spec_from_file_location(f"dag_file_{verb}", ROOT / "dags" / f"{verb}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {value.dag_id: value for value in vars(module).values() if isinstance(value, DAG)}


@pytest.mark.parametrize("verb", VERBS)
def test_each_pipeline_has_one_dag_of_each_verb(pipelines: Path, verb: str) -> None:
    assert set(load(verb)) == {f"shop.{verb}", f"crm.{verb}"}


@pytest.mark.parametrize("verb", VERBS)
def test_every_dag_is_its_own_runbook_and_runs_once_at_a_time(pipelines: Path, verb: str) -> None:
    for dag in load(verb).values():
        assert "**If it fails" in dag.doc_md or verb == "teardown"
        assert "**Safe to repeat" in dag.doc_md or verb == "teardown"
        assert dag.max_active_runs == 1
        assert dag.catchup is False
        assert {"penstock", verb} <= set(dag.tags)
        assert dag.on_failure_callback
        assert all(task.owner == "penstock" for task in dag.tasks)


@pytest.mark.parametrize("verb", VERBS)
def test_every_dag_says_in_one_line_when_it_runs_and_what_for(pipelines: Path, verb: str) -> None:
    for dag in load(verb).values():
        when, _, what = dag.description.partition(": ")
        assert re.fullmatch(r"(The main job, k|K)eep unpaused|By (hand|schedule)", when)
        assert ("main job" in dag.tags) == (verb in ("capture", "merge")) == when.startswith("The main job")
        assert what in dag.doc_md.replace(what.capitalize(), what) or what[1:] in dag.doc_md.partition("\n")[0]
        assert (dag.schedule is not None) == (when != "By hand") or verb in (
            "changelog",
            "maintain",
            "resync",
            "verify",
        )


@pytest.mark.parametrize("verb", VERBS)
def test_every_task_and_owner_leads_to_the_page_and_to_a_runbook(
    pipelines: Path, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from types import SimpleNamespace  # noqa: PLC0415

    from penstock.orchestration.links import met  # noqa: PLC0415  # Airflow, once its home is set

    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example:8443/cdc-team/")
    base = "https://airflow.example:8443/cdc-team"
    for name, dag in load(verb).items():
        place = f"{base}/plugin/cdc#{name.partition('.')[0]}"
        assert dag.owner_links == {"penstock": place}
        for task in dag.tasks:
            links = {link.name: link for link in task.operator_extra_links}
            key = SimpleNamespace(dag_id=name, run_id="by hand", task_id=task.task_id)
            other = SimpleNamespace(dag_id=name, run_id="met an error", task_id=task.task_id)
            met(other, "slot-lost")
            assert links["Runbook"].get_link(task, ti_key=other) == f"{base}/cdc/runbooks/slot-lost"
            assert links["Pipeline page"].get_link(task, ti_key=key) == place
            assert links["Runbook"].get_link(task, ti_key=key) == f"{base}/cdc/runbooks/README"


def test_no_dag_file_is_forgotten_here() -> None:
    files = {path.stem for path in (ROOT / "dags").glob("*.py")}

    assert files == {*VERBS, "pipeline_files"}


def test_one_bad_pipeline_file_leaves_the_other_pipelines_dags_alone(pipelines: Path) -> None:
    (pipelines / "bad.yaml").write_text("name: bad\ntabels: {}\n")

    assert set(load("capture")) == {"shop.capture", "crm.capture"}


def test_one_bad_pipeline_file_leaves_the_other_pipelines_tasks_and_notices_alone(pipelines: Path) -> None:
    from penstock.errors import ConfigError  # noqa: PLC0415
    from penstock.orchestration.tasks import find_context  # noqa: PLC0415  # after the throw-away home is set

    (pipelines / "bad.yaml").write_text("name: bad\ntabels: {}\n")

    assert [find_context(name).name for name in ("crm", "shop")] == ["crm", "shop"]
    with pytest.raises(ConfigError, match=r"bad\.yaml:2: tabels: unknown key; did you mean 'tables'"):
        find_context("bad")


def test_a_bad_pipeline_file_is_an_import_error_with_its_line_and_the_nearest_key(pipelines: Path) -> None:
    (pipelines / "bad.yaml").write_text("name: bad\ntabels: {}\n")

    with pytest.raises(Exception, match=re.compile(r"bad\.yaml:2.*tabels.*did you mean 'tables'", re.DOTALL)):
        load("pipeline_files")


def test_a_worker_builds_only_the_dag_it_runs(pipelines: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "crm.merge")
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_TASK_ID", "plan")

    assert set(load("merge")) == {"crm.merge"}


def test_the_library_is_not_executed_as_a_plugin() -> None:
    lines = (ROOT / "plugins" / ".airflowignore").read_text().split()

    assert "penstock/" in lines


def test_parsing_opens_no_connection(pipelines: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [key for key in os.environ if key.startswith("AIRFLOW_CONN_")]:
        monkeypatch.delenv(name)

    assert all(load(verb) for verb in VERBS)


@pytest.mark.parametrize(
    ("keys", "woken"),
    [("on_added: wait", True), ("on_change: pause", True), ("on_added: wait, on_change: pause", False)],
)
def test_resync_wakes_for_tables_that_joined_or_changed_unless_a_person_decides_on_both(
    pipelines: Path, keys: str, woken: bool
) -> None:
    (pipelines / "crm.yaml").write_text(f'name: crm\ntables: {{include: ["public.*"], {keys}}}\n')
    dags = load("resync")

    assert _assets(dags["shop.resync"]) == ["penstock://shop/new_tables"]
    assert _assets(dags["crm.resync"]) == (["penstock://crm/new_tables"] if woken else [])


def test_the_tasks_of_bootstrap_and_recover_are_the_steps_of_the_command_line_in_its_order(pipelines: Path) -> None:
    from penstock.flow.sequences import BOOTSTRAP, RECOVERY, MergeStep  # noqa: PLC0415

    for verb, first, steps in (("bootstrap", [], BOOTSTRAP), ("recover", ["look"], RECOVERY)):
        names = [[each.prepare, each.publish] if isinstance(each, MergeStep) else [each.name] for each in steps]
        dag: Any = load(verb)[f"shop.{verb}"]

        assert [task.task_id for task in dag.topological_sort()] == sum(names, first)
        assert all(len(task.upstream_list) <= 1 for task in dag.tasks)
        assert all(task.doc_md for task in dag.tasks if task.task_id in ("check", "publication", "new_era"))


def _assets(dag: Any) -> list[str]:
    """Name the assets that wake a DAG."""
    condition = getattr(dag.timetable, "asset_condition", None)
    return [asset.uri for asset in condition.objects] if condition is not None else []


def test_dag_files_import_what_the_dag_processor_needs_and_no_driver_or_engine(pipelines: Path, tmp_path: Path) -> None:
    """Airflow reads each of these files every few minutes, in a process that already has Airflow; tasks import the rest."""
    heavy = (
        "psycopg",
        "adbc_driver_manager",
        "pyarrow",
        "numpy",
        "numba",
        "duckdb",
        "pyiceberg",
        "penstock.flow.capture.run",
    )
    script = f"""
import sys
import airflow.sdk
before = set(sys.modules)
import runpy
for verb in {VERBS!r}:
    dags = [each for each in runpy.run_path(f"dags/{{verb}}.py").values() if isinstance(each, airflow.sdk.DAG)]
    assert len(dags) == 2, verb
    print(verb, sorted(name for name in {heavy!r} if name in sys.modules and name not in before))
"""
    environment = {**os.environ, "AIRFLOW_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT / "plugins")}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith(VERBS)] == [f"{verb} []" for verb in VERBS]

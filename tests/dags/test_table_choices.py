"""The tables that a trigger's form offers: from the file that tasks leave, without a look at any database."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.dags.test_dags import load
from tests.dags.test_runs import begin, run, states
from tests.pipeline_env import PipelineEnv

FORMS = {"resync": "tables", "replay": "tables", "verify": "tables", "maintain": "tables", "resume": "table"}


@pytest.fixture
def left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for the names of tables, in a home of the test's own."""
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "home"))
    folder = tmp_path / "home" / "penstock"
    folder.mkdir(parents=True)
    return folder


def offered(pipeline: str, verb: str) -> Any:
    """What the form of a DAG offers; a value of the param is read from the schema that the form is made of."""
    dag: Any = load(verb)[f"{pipeline}.{verb}"]
    return dag.params.get_param(FORMS[verb]).schema.get("examples")


@pytest.mark.parametrize("verb", FORMS)
def test_a_form_offers_the_tables_that_tasks_have_left(pipelines: Path, left: Path, verb: str) -> None:
    (left / "shop.tables.json").write_text(json.dumps(["public.a", "public.b"]))

    assert offered("shop", verb) == ["public.a", "public.b"]
    assert offered("crm", verb) is None, "of an empty list nothing could be chosen, nor typed"


def test_without_a_file_the_tables_are_those_that_the_patterns_spell_out(pipelines: Path, left: Path) -> None:
    (pipelines / "crm.yaml").write_text('name: crm\ntables: {include: ["sales.orders", "public.*", "app.users"]}\n')

    assert offered("crm", "resync") == ["app.users", "sales.orders"]


@pytest.mark.parametrize("content", ["", "{", "{}", "[1]"])
def test_a_file_of_another_form_stops_no_dag(pipelines: Path, left: Path, content: str) -> None:
    (left / "shop.tables.json").write_text(content)

    assert offered("shop", "verify") is None


def test_names_that_cannot_be_left_leave_no_draft_behind(left: Path) -> None:
    from penstock.orchestration import table_choices  # noqa: PLC0415  # after the throw-away home is set

    (left / "shop.tables.json").mkdir()
    tables = SimpleNamespace(all=lambda _: [SimpleNamespace(qualified="public.t", state="ready")])
    said: list[str] = []
    ctx: Any = SimpleNamespace(name="shop", ledger=SimpleNamespace(tables=tables), progress=said.append)

    table_choices.note(ctx)

    assert said == ["the forms of the DAGs do not get the names of the tables: Is a directory"]
    assert [each.name for each in left.iterdir()] == ["shop.tables.json"]


@pytest.mark.parametrize("verb", FORMS)
def test_a_form_that_was_cleared_is_taken(pipelines: Path, left: Path, verb: str) -> None:
    dag: Any = load(verb)["shop." + verb]
    param = dag.params.get_param(FORMS[verb])

    assert param.resolve(None) is None
    assert param.resolve() == param.value


@pytest.mark.slow
def test_slot_health_leaves_the_tables_and_a_name_that_is_none_of_them_is_refused_by_the_task(
    deployed: PipelineEnv, left: Path
) -> None:
    begin(deployed)
    deployed.sql("create table u (id int primary key)")
    run("capture", deployed)
    run("slot_health", deployed)

    assert offered(deployed.name, "resync") == ["public.t", "public.u"]
    assert states(run("resync", deployed, tables=["public.tt"]))["look"] == "failed"
    (event, *_) = deployed.ctx.ledger.events.all(deployed.name)
    assert "did you mean public.t" in event.message


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_to_stops_nothing(deployed: PipelineEnv, left: Path) -> None:
    begin(deployed)
    left.rmdir()
    left.write_text("a file stands in the way")

    assert states(run("slot_health", deployed))["check"] == "success"

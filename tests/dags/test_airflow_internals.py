"""What Penstock uses of Airflow beyond its public interface: it is there, has the form that we need, and stands in one module."""

import ast
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.dags.test_dags import ROOT

INTERNALS = ROOT / "plugins" / "penstock" / "orchestration" / "airflow_internals.py"
PUBLIC = ("airflow.sdk", "airflow.sdk.exceptions", "airflow.plugins_manager")
"""What https://airflow.apache.org/docs/apache-airflow/stable/public-airflow-interface.html names; of `airflow.sdk` what `__all__` has."""
PROVIDERS = "airflow.providers."
"""A provider's public parts are its hooks, operators, and the like: modules without an underscore."""


def _channel() -> bool:
    from airflow.sdk.execution_time import comms, task_runner  # noqa: PLC0415  # after the throw-away home is set

    request = comms.TriggerDagRun(dag_id="shop.merge", run_id="capture__1", conf={"force": True})
    answer = set(comms.ErrorResponse.model_fields)
    declared = "SUPERVISOR_COMMS" in task_runner.__annotations__ or hasattr(task_runner, "SUPERVISOR_COMMS")
    return declared and request.conf == {"force": True} and {"error", "detail"} <= answer


def _runtime_error() -> bool:
    from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType  # noqa: PLC0415
    from airflow.sdk.execution_time.comms import ErrorResponse  # noqa: PLC0415

    from penstock.orchestration.airflow_internals import is_not_found  # noqa: PLC0415

    errors = [
        AirflowRuntimeError(ErrorResponse(error=ErrorType.API_SERVER_ERROR, detail=detail))
        for detail in ({"status_code": 404}, {"status_code": 500}, None)
    ]
    return [is_not_found(error) for error in errors] == [True, False, False]


def _stats() -> bool:
    from airflow.sdk.observability import stats  # noqa: PLC0415

    return all("tags" in inspect.signature(getattr(stats, name)).parameters for name in ("gauge", "incr"))


def _spark_operator() -> bool:
    from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator  # noqa: PLC0415

    operator = SparkSubmitOperator(task_id="t", conn_id="penstock_spark")
    ours = ("_driver_memory", "application", "application_args", "py_files", "conf", "name")
    return all(hasattr(operator, each) for each in ours) and "self._hook = self._get_hook()" in _source()


def _exit_status() -> bool:
    """Let the provider's own hook run a command that ends with a status."""
    import os  # noqa: PLC0415

    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook  # noqa: PLC0415
    from airflow.sdk.exceptions import AirflowException  # noqa: PLC0415

    from penstock.orchestration.airflow_internals import exit_status  # noqa: PLC0415

    class Ends(SparkSubmitHook):  # type: ignore[misc]
        def _build_spark_submit_command(self, application: str) -> list[str]:
            return ["sh", "-c", "exit 74"]

    os.environ["AIRFLOW_CONN_PENSTOCK_SPARK"] = '{"conn_type": "spark", "host": "local[1]"}'
    try:
        Ends(conn_id="penstock_spark").submit("merge_changes.py")
    except AirflowException as error:
        return exit_status(error) == 74 and exit_status(AirflowException("it was killed")) is None
    finally:
        del os.environ["AIRFLOW_CONN_PENSTOCK_SPARK"]
    return False


def _source() -> str:
    from airflow.providers.apache.spark.operators import spark_submit  # noqa: PLC0415

    return inspect.getsource(spark_submit)


def _listener() -> bool:
    from importlib.util import find_spec  # noqa: PLC0415

    listener = "airflow.providers.openlineage.plugins.listener"
    try:
        return find_spec(listener) is not None
    except ModuleNotFoundError:  # the provider is not installed here; tests/dags/test_openlineage.py brings it
        return True


def _access() -> bool:
    from penstock.orchestration.airflow_internals import page_access  # noqa: PLC0415

    return callable(page_access())


def _metadata() -> bool:
    from airflow.models.dag import DagModel  # noqa: PLC0415
    from airflow.models.dagrun import DagRun  # noqa: PLC0415
    from airflow.models.pool import Pool  # noqa: PLC0415
    from airflow.models.taskinstance import TaskInstance  # noqa: PLC0415
    from airflow.utils.state import TaskInstanceState  # noqa: PLC0415

    from penstock.orchestration.airflow_internals import ACTIVE  # noqa: PLC0415

    task = {"dag_id", "run_id", "task_id", "map_index", "state", "pool", "pool_slots"}
    times = {"start_date", "queued_dttm", "scheduled_dttm"}
    read = {
        DagModel: {"dag_id", "is_paused", "is_stale"},
        DagRun: {"dag_id", "state"},
        Pool: {"pool", "slots"},
        TaskInstance: task | times,
    }
    there = all(names <= set(model.__table__.columns.keys()) for model, names in read.items())
    return there and set(ACTIVE) <= {str(state) for state in TaskInstanceState}


NAMES: dict[str, tuple[Callable[[], bool], str]] = {
    "airflow.sdk.execution_time.task_runner.SUPERVISOR_COMMS, .comms.TriggerDagRun, .comms.ErrorResponse": (
        _channel,
        "trigger_dag_run: see how airflow.providers.standard.operators.trigger_dagrun makes a run of another DAG, and do as "
        "it does; without it wake_merge does nothing, and the asset event of capture starts the merge at its end",
    ),
    "airflow.sdk.exceptions.AirflowRuntimeError.error.detail['status_code']": (
        _runtime_error,
        "is_not_found: see what ti.get_dag() of an unknown DAG raises; if that cannot be told, return False, and a DAG that "
        "is missing counts as one that runs",
    ),
    "airflow.sdk.observability.stats.gauge, .incr": (
        _stats,
        "stats: see what airflow.sdk's own task runner counts its ends with (ti.finish), and import that as stats",
    ),
    "SparkSubmitOperator._driver_memory, ._hook, and its application, conf, name when it runs": (
        _spark_operator,
        "describe_job: see what SparkSubmitOperator.__init__ keeps and _get_hook reads; set the same",
    ),
    "SparkSubmitHook.submit: AirflowException(... Error code is: <status> ...)": (
        _exit_status,
        "exit_status: see how SparkSubmitHook.submit tells the status of spark-submit; where it does not, return None, and a driver "
        "that could not write its result is spark-failed",
    ),
    "airflow.providers.openlineage.plugins.listener, as imported by its plugin": (
        _listener,
        "is_lineage_wanted: see what airflow.providers.openlineage.plugins.openlineage imports where it is not disabled",
    ),
    "airflow.api_fastapi...security.requires_access_view, ...resource_details.AccessView.PLUGINS": (
        _access,
        "page_access: see what Airflow's own route /api/v2/plugins depends on; without it the page must not be shown at all",
    ),
    "airflow.models.dag.DagModel, .dagrun.DagRun, .pool.Pool, .taskinstance.TaskInstance, airflow.utils.session.create_session": (
        _metadata,
        "airflow_state: see from what Airflow's own routes /api/v2/dags, /api/v2/pools and "
        "the lists of runs and task instances read; where that cannot be told let it return None, and the page says so",
    ),
}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_public_is_there_as_we_need_it_or_says_what_to_change(name: str) -> None:
    found, advice = NAMES[name]
    try:
        as_needed, why = found(), "it has another form"
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        as_needed, why = False, f"{type(error).__name__}: {error}"

    assert as_needed, f"Airflow has changed {name} ({why}). In {INTERNALS.name} mend {advice}"


def test_every_function_of_the_one_module_is_held_against_airflow_here() -> None:
    tree = ast.parse(INTERNALS.read_text())
    exported = next(node.value for node in tree.body if isinstance(node, ast.Assign))
    advice = " ".join(words for _, words in NAMES.values())

    assert [name for name in ast.literal_eval(exported) if f"{name}" not in advice] == []


def ours() -> Iterator[Path]:
    """The files that a deployment runs, and the examples that users copy."""
    for folder in ("plugins", "dags", "docs/examples", "spark_apps", "include"):
        yield from (path for path in sorted((ROOT / folder).rglob("*.py")) if path != INTERNALS)


def imported(tree: ast.AST) -> Iterator[tuple[str, str | None]]:
    """The modules of Airflow that a file imports, wherever it does, with the name taken from each."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((each.name, None) for each in node.names if each.name.split(".")[0] == "airflow")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "airflow":
            yield from ((str(node.module), each.name) for each in node.names)


def _is_public(module: str, name: str | None) -> bool:
    import airflow.sdk  # noqa: PLC0415  # after the throw-away home is set

    if module.startswith(PROVIDERS):
        return "._" not in f"{module}.{name}"
    return module in PUBLIC and name is not None and (module != "airflow.sdk" or name in airflow.sdk.__all__)


def test_every_other_file_uses_what_airflow_calls_public() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {module}.{name}"
        for path in ours()
        for module, name in imported(ast.parse(path.read_text()))
        if not _is_public(module, name)
    ]

    assert found == [], f"take it from {PUBLIC}, or through a function of {INTERNALS.name} with its line in NAMES"


def borrowed(tree: ast.AST) -> set[str]:
    """The attributes with an underscore that a file uses and does not define: those of somebody else's objects."""
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr.startswith("_")}
    stored = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_self(node.value)
    }
    named = {str(getattr(node, "name", getattr(getattr(node, "target", None), "id", ""))) for node in ast.walk(tree)}
    return {name for name in used - stored - named if not name.endswith("__")}


def _is_self(node: Any) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def test_no_other_file_that_talks_to_airflow_reaches_into_its_objects() -> None:
    talking = [path for path in ours() if any(imported(ast.parse(path.read_text())))]

    assert len(talking) > 20
    assert {
        path.name: borrowed(ast.parse(path.read_text())) for path in talking if borrowed(ast.parse(path.read_text()))
    } == {}


def test_reaching_into_an_object_is_noticed() -> None:
    assert borrowed(
        ast.parse("class A:\n    def __init__(self): self._own = 1\n    def f(self): return self._own, task._hook")
    ) == {"_hook"}

"""What the page is told of Airflow's metadata database: which DAGs are paused, and what runs or waits."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.page.airflow_rows import forget, make_dags, make_task


@pytest.fixture
def shop(airflow_home: Path) -> Iterator[str]:
    """A pipeline of which one DAG is paused, and one is missing."""
    make_dags("page_shop", paused=["merge"], missing=["resync"])
    make_dags("page_shop_2")
    yield "page_shop"
    forget("page_shop")
    forget("page_shop_2")


def test_a_dag_is_paused_unpaused_or_missing(shop: str) -> None:
    from penstock.orchestration.airflow_internals import airflow_state  # noqa: PLC0415

    state = airflow_state([shop], False)

    assert state is not None
    assert (state.dag(f"{shop}.merge").paused, state.dag(f"{shop}.capture").paused) == (True, False)
    assert state.dag(f"{shop}.resync").missing
    assert "page_shop_2.capture" not in state.dags, "its name only begins alike"


def test_a_dag_with_a_queued_or_running_run_is_under_way(shop: str) -> None:
    from penstock.orchestration.airflow_internals import airflow_state  # noqa: PLC0415

    make_task(f"{shop}.bootstrap", "check", "scheduled")
    make_task("page_shop_2.capture", "windows", "running")

    state = airflow_state([shop], False)

    assert state is not None
    assert [dag_id for dag_id, dag in state.dags.items() if dag.under_way] == [f"{shop}.bootstrap"]


def test_what_runs_and_what_waits_is_seen_with_its_pool(shop: str) -> None:
    from penstock.orchestration.airflow_internals import airflow_state  # noqa: PLC0415

    run = make_task(f"{shop}.merge", "spark", "running", pool="page_pool")
    make_task(f"{shop}.maintain", "maintain", "scheduled", pool="page_pool")
    make_task(f"{shop}.capture", "windows", "success", pool="page_pool")

    state = airflow_state([shop], True)

    assert state is not None
    seen = [(each.task, each.run_id == run, each.state, each.pool) for each in state.tasks if each.dag.startswith(shop)]
    assert sorted(seen) == [("maintain", False, "scheduled", "page_pool"), ("spark", True, "running", "page_pool")]
    assert all(each.since for each in state.tasks)
    assert state.pools["page_pool"] == 1

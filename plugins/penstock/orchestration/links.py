"""Links from Airflow's UI to ours: from a task to its pipeline's page, and to the runbook of the error that it ended with.

A task's links are made when it ends, in its own process, which knows what it met.
"""

from typing import Any

from airflow.sdk import DAG, BaseOperatorLink, conf

from penstock.flow.health.links import Links

INDEX = "README"
_met: dict[tuple[str, str, str], str] = {}


def base() -> str:
    """Return Airflow's own address; empty where it is not configured."""
    return str(conf.get("api", "base_url", fallback=""))


def met(ti: Any, slug: str) -> None:
    """Note the error that a task of this process met, for its link."""
    _met[task_key(ti)] = slug


def task_key(ti: Any) -> tuple[str, str, str]:
    """Name a task of a run."""
    return ti.dag_id, ti.run_id, ti.task_id


class PageLink(BaseOperatorLink):
    """Lead from a task to the page of its pipeline."""

    name = "Pipeline page"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ARG002  # Airflow's form
        """Return the address."""
        return Links(base()).page(ti_key.dag_id.rpartition(".")[0])


class RunbookLink(BaseOperatorLink):
    """Lead from a task to the runbook of the error that it ended with, else to all runbooks."""

    name = "Runbook"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ARG002  # Airflow's form
        """Return the address."""
        return Links(base()).runbook(_met.get(task_key(ti_key), INDEX))


def attach(dag: DAG) -> None:
    """Give every task of a DAG these links."""
    for each in dag.tasks:
        each.operator_extra_links = (*each.operator_extra_links, PageLink(), RunbookLink())


def owner_links(owner: str, pipeline: str) -> dict[str, str]:
    """Return the link of a DAG's owner; none where Airflow does not say what its address is."""
    return {owner: Links(base()).page(pipeline)} if base().startswith(("http://", "https://")) else {}

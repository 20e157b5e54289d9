"""Links from Airflow's UI to ours: from a task to its pipeline's page, and to the runbook of the error that it ended with.

A task's links are made when it ends, in its own process, which knows what it met.
"""

from __future__ import annotations

from typing import Any

from airflow.configuration import conf
from airflow.sdk import DAG, BaseOperatorLink

MENU = "plugin/cdc"
"""Where Airflow's UI shows the page."""
PAGE = "cdc"
"""Where the API server has the page itself."""
_met = ["README"]


def page(pipeline: str) -> str:
    """Return the address of the pipeline's page in Airflow's UI."""
    return f"{_base()}/{MENU}#{pipeline}"


def runbook_page(slug: str) -> str:
    """Return the address of the page's copy of a runbook."""
    return f"{_base()}/{PAGE}/runbooks/{slug}"


def met(slug: str) -> None:
    """Note the error that this process's task met, for its link."""
    _met[0] = slug


class PageLink(BaseOperatorLink):
    """Lead from a task to the page of its pipeline."""

    name = "Pipeline page"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ARG002  # Airflow's form
        """Return the address."""
        return page(ti_key.dag_id.rpartition(".")[0])


class RunbookLink(BaseOperatorLink):
    """Lead from a task to the runbook of the error that it ended with, else to all runbooks."""

    name = "Runbook"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ARG002  # Airflow's form
        """Return the address."""
        return runbook_page(_met[0])


def attach(dag: DAG) -> None:
    """Give every task of a DAG these links."""
    for each in dag.tasks:
        each.operator_extra_links = (*each.operator_extra_links, PageLink(), RunbookLink())


def owner_links(owner: str, pipeline: str) -> dict[str, str]:
    """Return the link of a DAG's owner; none where Airflow does not say what its address is."""
    return {owner: page(pipeline)} if _base().startswith(("http://", "https://")) else {}


def _base() -> str:
    return str(conf.get("api", "base_url", fallback="")).rstrip("/")

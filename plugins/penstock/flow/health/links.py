"""Where a message leads: the page with its runbooks, and the DAGs, runs and logs in Airflow's UI. Pure.

Without the address of the UI, pages are named by their file and nothing else is linked. A file of its own, as DAG files import it:
alerts import the ledger's records, and with them its driver.
"""

from dataclasses import dataclass
from urllib.parse import quote

from penstock.conditions import runbook


@dataclass(frozen=True, slots=True)
class Links:
    """Lead to places of one Airflow; `base` is the address of its UI, empty where that is unknown."""

    base: str = ""
    published: str | None = None
    """Where the runbooks are published, if elsewhere than on the page."""

    def page(self, pipeline: str) -> str:
        """Return the address of a pipeline on the page."""
        return f"{self._base}/plugin/cdc#{pipeline}" if self.base else ""

    def runbook(self, slug: str) -> str:
        """Return where a runbook is to be read."""
        if self.published:
            return f"{self.published.rstrip('/')}/{runbook(slug).rpartition('/')[2]}"
        return f"{self._base}/cdc/runbooks/{slug}" if self.base else runbook(slug)

    def dag(self, dag_id: str) -> str:
        """Return the address of a DAG."""
        return f"{self._base}/dags/{quote(dag_id)}" if self.base else ""

    def run(self, dag_id: str, run_id: str) -> str:
        """Return the address of a run."""
        return f"{self.dag(dag_id)}/runs/{quote(run_id)}" if self.base else ""

    def log(self, dag_id: str, run_id: str, task: str) -> str:
        """Return the address of a task's log."""
        return f"{self.run(dag_id, run_id)}/tasks/{quote(task)}" if self.base else ""

    @property
    def _base(self) -> str:
        return self.base.rstrip("/")

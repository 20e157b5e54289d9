"""How far a merge is, in a small file of the landing zone: whoever waits for it in Airflow shows that."""

import json
import logging
import os
import time
from collections.abc import Mapping
from threading import Lock

from penstock.errors import PenstockError
from penstock.jobs.plans import MergePlan, TablePlan
from penstock.landing import layout, store
from penstock.landing.zone import LandingZone

EVERY_SECONDS = 2.0
_log = logging.getLogger("penstock.merge")


class Progress:
    """Count the rows of the tables that are merged; a zone that does not take the file stops nothing."""

    def __init__(self, plan: MergePlan, environment: Mapping[str, str]) -> None:
        self._plan, self._environment = plan, environment
        self._due, self._done = sum(map(_rows, plan.tables)), 0
        self._told = time.monotonic()  # a merge that is over within a moment writes nothing
        self._lock = Lock()

    def merged(self, order: TablePlan) -> None:
        """Note that a table is merged."""
        with self._lock:
            self._done += _rows(order)
            if time.monotonic() - self._told >= EVERY_SECONDS:
                self._tell()
                self._told = time.monotonic()

    def _tell(self) -> None:
        plan = self._plan
        options = store.given(plan.landing_options, {**os.environ, **self._environment})
        text = json.dumps({"rows": self._done, "rows_due": self._due})
        try:
            zone = LandingZone.open(plan.landing_uri, options, {})
            zone.write_text(layout.progress_file(plan.pipeline, plan.attempt), text)
        except PenstockError as error:
            _log.info("how far this merge is could not be told: %s", error)


def _rows(order: TablePlan) -> int:
    return sum(file.rows for file in (*order.files, *(order.copy_files or ())))

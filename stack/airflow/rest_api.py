"""Airflow's REST API, as far as a script needs it: health, DAGs, runs, tasks, logs, pools.

A token is fetched on the first call and again when it has expired. Answers are Airflow's own JSON.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import httpx

from penstock.polling import poll
from stack.errors import StackError

Json = dict[str, Any]

FINISHED = ("success", "failed")
COMPONENTS = ("metadatabase", "scheduler", "dag_processor", "triggerer")
PAGE = 100
PATIENT = httpx.Timeout(None, connect=60.0)
"""The first task makes the server build its API for tasks, and it answers no request meanwhile; a dead one closes its connections."""


@dataclass
class AirflowApi:
    """A client of the API at `url`, logged in as `user`.

    It waits as long as Airflow takes, for which `require_alive` raises StackError where a component has ended.
    """

    url: str
    user: str
    password: str = field(repr=False)
    require_alive: Callable[[], None] = field(default=lambda: None, repr=False)
    _token: str | None = field(default=None, init=False, repr=False)

    # --- health --------------------------------------------------------------------------------------

    def unhealthy(self) -> list[str]:
        """List what does not report itself healthy yet; `API` when nothing answers at all."""
        try:
            answer = httpx.get(f"{self.url}/api/v2/monitor/health", timeout=5.0)
            health = answer.raise_for_status().json()
        except (httpx.HTTPError, ValueError):
            return ["API"]
        return [name for name in COMPONENTS if health.get(name, {}).get("status") != "healthy"]

    # --- DAGs ----------------------------------------------------------------------------------------

    def dags(self) -> list[Json]:
        """List the DAGs that Airflow has read."""
        return self._all("dags", "dags")

    def import_errors(self) -> list[Json]:
        """List the DAG files that could not be read, with the reason."""
        return self._all("importErrors", "import_errors")

    def wait_for_dag(self, dag_id: str) -> None:
        """Return when Airflow knows this DAG; an import error that is found meanwhile ends the wait at once.

        One from before may be that of an earlier Airflow, which had no time to read the file again.
        """
        begun = datetime.now(UTC)
        for _ in poll(pause=1):
            if any(dag["dag_id"] == dag_id for dag in self.dags()):
                return
            if errors := [each for each in self.import_errors() if _time(each["timestamp"]) >= begun]:
                came = "; ".join(f"{each['filename']}: {_last_line(each['stack_trace'])}" for each in errors)
                raise StackError(f"Airflow to read the DAG {dag_id}", came, "fix the file that is named")
            self.require_alive()

    def pause(self, dag_id: str, paused: bool = True) -> None:
        """Pause a DAG: its schedule starts no further run."""
        self.call("PATCH", f"dags/{dag_id}", params={"update_mask": "is_paused"}, json={"is_paused": paused})

    def unpause(self, dag_id: str) -> None:
        """Let a DAG's schedule start runs."""
        self.pause(dag_id, paused=False)

    # --- runs ----------------------------------------------------------------------------------------

    def trigger(self, dag_id: str, conf: Json | None = None) -> str:
        """Start a run and return its id."""
        body = {"logical_date": None, "conf": conf or {}}
        run_id: str = self.call("POST", f"dags/{dag_id}/dagRuns", json=body)["dag_run_id"]
        return run_id

    def runs(self, dag_id: str) -> list[Json]:
        """List the runs of a DAG, oldest first."""
        return self._all(f"dags/{dag_id}/dagRuns", "dag_runs", order_by="run_after")

    def run(self, dag_id: str, run_id: str) -> Json:
        """Return one run; its `state` is queued, running, success or failed."""
        return self.call("GET", f"dags/{dag_id}/dagRuns/{run_id}")

    def wait_for_run(
        self,
        dag_id: str,
        run_id: str,
        say: Callable[[list[Json]], None] = lambda _: None,
    ) -> None:
        """Return when a run has succeeded; `say` hears its task instances once per second.

        Raises `StackError` with the failed task's last log lines.
        """
        for _ in poll(pause=1):
            state = self.run(dag_id, run_id)["state"]
            say(self.task_instances(dag_id, run_id))
            if state == "success":
                return
            if state in FINISHED:
                raise StackError(
                    f"{dag_id} {run_id} to succeed",
                    self.failure(dag_id, run_id),
                    f"see its whole log in Airflow's UI, {self.url}",
                )
            self.require_alive()

    def task_instances(self, dag_id: str, run_id: str) -> list[Json]:
        """List the task instances of a run."""
        return self._all(f"dags/{dag_id}/dagRuns/{run_id}/taskInstances", "task_instances")

    def log(self, dag_id: str, run_id: str, task_id: str, try_number: int = 1, map_index: int = -1) -> str:
        """Return the log of one try of one task as lines of text."""
        path = f"dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/logs/{try_number}"
        answer = self.call("GET", path, params={"full_content": True, "map_index": map_index})
        content = answer["content"]
        if isinstance(content, str):
            return content
        return "\n".join(_log_line(entry) for entry in content)

    def failure(self, dag_id: str, run_id: str, lines: int = 30) -> str:
        """Say which tasks of a run failed, with the last lines of each one's log."""
        reports = []
        for task in self.task_instances(dag_id, run_id):
            if task["state"] == "failed":
                log = self.log(dag_id, run_id, task["task_id"], task["try_number"], task["map_index"])
                reports.append("\n".join([f"task {task['task_id']} failed", *log.splitlines()[-lines:]]))
        return "\n".join(reports) or "the run failed without a failed task"

    # --- pools ---------------------------------------------------------------------------------------

    def make_pool(self, name: str, slots: int, description: str) -> None:
        """Make a pool unless one of this name is there."""
        body = {"name": name, "slots": slots, "description": description, "include_deferred": False}
        self.call("POST", "pools", json=body, accept=(HTTPStatus.CONFLICT,))

    # --- details -------------------------------------------------------------------------------------

    def call(self, method: str, path: str, *, accept: tuple[int, ...] = (), **options: Any) -> Json:
        """Make one call below /api/v2 and return its JSON; a status in `accept` is no error."""
        answer = self._send(method, path, options)
        if answer.status_code == HTTPStatus.UNAUTHORIZED:
            self._token = None
            answer = self._send(method, path, options)
        if answer.is_error and answer.status_code not in accept:
            raise StackError(
                f"{method} {path} to be answered",
                f"{answer.status_code} {answer.text[:500]}",
                "read the log of Airflow's api-server",
            )
        found: Json = answer.json() if answer.content else {}
        return found

    def _send(self, method: str, path: str, options: Json) -> httpx.Response:
        try:
            headers = {"Authorization": f"Bearer {self._logged_in()}"}
            url = f"{self.url}/api/v2/{path}"
            return httpx.request(method, url, headers=headers, timeout=PATIENT, **options)
        except httpx.TransportError as error:
            raise StackError(f"Airflow's API at {self.url}", str(error), "`make up` starts it") from error

    def _logged_in(self) -> str:
        if self._token is None:
            login = {"username": self.user, "password": self.password}
            answer = httpx.post(f"{self.url}/auth/token", json=login, timeout=PATIENT)
            if answer.status_code != HTTPStatus.CREATED:
                raise StackError(
                    "Airflow to accept the generated login",
                    f"status {answer.status_code}",
                    "restart it: `make down`, then `make up`",
                )
            self._token = str(answer.json()["access_token"])
        return self._token

    def _all(self, path: str, key: str, **params: Any) -> list[Json]:
        found: list[Json] = []
        while True:
            page = self.call("GET", path, params={"limit": PAGE, "offset": len(found), **params})
            found += page[key]
            if not page[key] or len(found) >= page["total_entries"]:
                return found


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""


def _log_line(entry: Json) -> str:
    """Render a structured entry: time, level, event, and an error's own words."""
    words = [str(entry.get(name, "")) for name in ("timestamp", "level", "event")]
    for error in entry.get("error_detail") or []:
        words.append(f"{error.get('exc_type')}: {error.get('exc_value')}")
    return " ".join(filter(None, words))

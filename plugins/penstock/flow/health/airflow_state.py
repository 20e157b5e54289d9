"""What Airflow says of DAGs and tasks: plain values, so that rules and the page need no Airflow to be tested."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class DagState:
    """Say how a DAG stands, as far as whoever runs us can see; `paused` is None where it can't.

    `missing`: Airflow has no such DAG. `under_way`: a run of it is queued or running.
    """

    paused: bool | None = None
    missing: bool = False
    under_way: bool = False


@dataclass(frozen=True, slots=True)
class ActiveTask:
    """Hold one task that runs or waits; `since` is when it began to, `map_index` -1 for a task that is not mapped."""

    dag: str
    run_id: str
    task: str
    state: str
    pool: str
    slots: int
    since: datetime | None
    map_index: int = -1


@dataclass(frozen=True, slots=True)
class AirflowState:
    """Hold which DAGs there are and whether they are paused, the tasks under way, and how many slots each pool has."""

    dags: Mapping[str, DagState] = field(default_factory=dict)
    tasks: Sequence[ActiveTask] = ()
    pools: Mapping[str, int] = field(default_factory=dict)

    def dag(self, dag_id: str) -> DagState:
        """Return how a DAG stands."""
        return self.dags.get(dag_id, DagState(missing=True))


AirflowQuery = Callable[[Collection[str], bool], AirflowState | None]
"""Return how the DAGs of these pipelines stand, and with True the tasks under way, too; None where Airflow does not say."""

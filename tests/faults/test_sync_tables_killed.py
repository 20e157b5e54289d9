"""Capture killed while tables join and leave: the next run finds what the publication says, and records it once."""

import pytest

from tests.faults.harness import killed
from tests.faults.oracle import at_source, landed
from tests.faults.steps import Step
from tests.pipeline_env import PipelineEnv
from tests.scenarios.members import copy_waiting, members, messages, states

JOINING = [
    (Step.PUBLICATION_TABLE_ADDED, "before"),
    (Step.PUBLICATION_TABLE_ADDED, "after"),
    (Step.SERVER_SIGHTED, "after"),
    (Step.MEMBERS_JOINED, "before"),
    (Step.MEMBERS_JOINED, "after"),
]
LEAVING = [
    (Step.PUBLICATION_ALTERED, "after"),
    (Step.MEMBERS_LEFT, "before"),
    (Step.MEMBERS_LEFT, "after"),
]


def begin(env: PipelineEnv) -> None:
    env.begin("create table t (id int primary key, note text); insert into t values (1, 'copied')")


@pytest.mark.slow
def test_whatever_step_is_the_last_a_table_joins_once_and_is_copied_exactly(doomed: PipelineEnv) -> None:
    begin(doomed)
    for number, kill in enumerate(JOINING):
        doomed.sql(f"create table u{number} (id int primary key, note text); insert into u{number} values (1, 'early')")
        killed(doomed, "capture", *kill)
        doomed.land(
            f"insert into u{number} values (2, 'before it is noted'); update u{number} set note = '' where id = 1"
        )
        doomed.sql(f"insert into u{number} values (3, 'after')")

    joined = {f"u{number}" for number in range(len(JOINING))}
    assert states(doomed) == {"t": "copied", **dict.fromkeys(joined, "waiting")}
    assert len(messages(doomed, "table-added")) == len(joined)
    copy_waiting(doomed)
    for table in sorted(joined):
        doomed.sql(f"delete from {table} where id = 2")
    doomed.capture()
    for table in sorted(joined):
        assert landed(doomed, table, "id") == at_source(doomed, table, "id") != {}


@pytest.mark.slow
def test_whatever_step_is_the_last_a_table_leaves_once(doomed: PipelineEnv) -> None:
    begin(doomed)
    tables = [f"u{number}" for number in range(len(LEAVING))]
    doomed.land("; ".join(f"create table {table} (id int primary key)" for table in tables))
    for table, kill in zip(tables, LEAVING, strict=True):
        left = [*doomed.settings.get("tables", {"exclude": []})["exclude"], f"public.{table}"]
        doomed.settings["tables"] = {"include": ["public.*"], "exclude": left}
        killed(doomed, "capture", *kill)
        doomed.capture()

    assert members(doomed) == {"t"}
    assert states(doomed) == {"t": "copied", **dict.fromkeys(tables, "dropped")}
    assert len(messages(doomed, "table-removed")) == len(tables)

"""Arrays of more than one dimension: misfits as they are, exact texts where the pipeline file chooses that, from the next copy on."""

import pytest

from penstock.flow import check as checking
from tests.pipeline_env import PipelineEnv

pytestmark = pytest.mark.spark

MADE = "create table t (id int primary key, grid int[][], names text[]); insert into t values (1, '{{1,2},{3,4}}', '{a}'), (2, '{5}', null)"


def choose(env: PipelineEnv, *columns: str) -> None:
    """Edit the pipeline file."""
    entries = [{"include": ["public.t"], "columns": list(columns), "type": "string"}] if columns else []
    env.settings["tables"] = {"include": ["public.*"], "columns": entries}


def resync(env: PipelineEnv) -> None:
    """Copy the table again, and let the copy take its place."""
    env.resync("public.t")
    env.follow()


def differing(env: PipelineEnv) -> list[str]:
    return [each.next_step or "" for each in checking.check(env.ctx) if "asks for another type of" in each.message]


def test_text_is_chosen_for_a_table_that_runs_and_taken_away_again(env16: PipelineEnv) -> None:
    env16.bootstrap(MADE)
    assert sorted(env16.lake_rows("t", "id, grid")) == [(1, None), (2, [5])]
    assert differing(env16) == []

    choose(env16, "grid", "later")
    assert differing(env16) == [f"run: penstock resync {env16.name} --table public.t --no-dry-run"]
    env16.follow("update t set names = '{b}' where id = 1; insert into t values (3, '{{6},{7}}', '{}')")
    assert env16.paused() == {}
    assert sorted(env16.lake_rows("t", "id, grid")) == [(1, None), (2, [5]), (3, None)], "until it is copied again"

    resync(env16)
    assert differing(env16) == []
    assert sorted(env16.lake_rows("t", "id, grid")) == [(1, "{{1,2},{3,4}}"), (2, "{5}"), (3, "{{6},{7}}")]
    env16.follow(
        "update t set grid[1][1] = 0 where id = 1; update t set id = 20 where id = 2; delete from t where id = 3;"
        "alter table t add later int[][] default '{{8}}'; insert into t values (4, null, null, '{{9},{9}}')"
    )
    assert env16.paused() == {}
    rows = [(1, "{{0,2},{3,4}}", "{{8}}"), (4, None, "{{9},{9}}"), (20, "{5}", "{{8}}")]
    assert sorted(env16.lake_rows("t", "id, grid, later")) == rows
    assert env16.unlike() == []

    choose(env16)
    resync(env16)
    assert sorted(env16.lake_rows("t", "id, grid, later")) == [(1, None, None), (4, None, None), (20, [5], None)]
    assert env16.unlike() == []

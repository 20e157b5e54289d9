"""A column that bears a name of Iceberg's, or of ours, keeps its table out of the lake or pauses it, and stops no other."""

import pytest

from penstock.errors import LakeError
from penstock.flow import check
from penstock.flow.load import waiting
from penstock.flow.load.resync import to_copy
from penstock.flow.recover.resume import resume_table
from penstock.shapes.mirror_column import reserved
from tests.pipeline_env import PipelineEnv
from tests.scenarios.members import begin, members, messages, states

NAMES = (
    *("_file", "_pos", "_partition", "_deleted", "_spec_id", "_row_id", "_last_updated_sequence_number"),
    *("_misfits", "_Misfits"),
)


def test_names_that_readers_do_not_mind_are_columns_as_any_other() -> None:
    free = (
        "file",
        "pos",
        "row",
        "file_path",
        "_metadata",
        "_change_type",
        "_change_ordinal",
        "_commit_snapshot_id",
        "_FILE",
    )

    assert reserved(free) is None
    assert [reserved(["id", name]) for name in NAMES] == list(NAMES)


def test_a_check_refuses_a_table_with_such_a_column_by_its_name(env16: PipelineEnv) -> None:
    env16.each(NAMES, 'create table "t{t}" (id int primary key, "{t}" text)')

    found = [each for each in check.check(env16.ctx) if each.slug == "target-clash"]

    assert {each.subject for each in found} == {f"public.t{name}" for name in NAMES}


def test_a_table_with_such_a_column_does_not_join_and_the_others_continue(env16: PipelineEnv) -> None:
    begin(env16)
    env16.land('create table bad (id int primary key, "_row_id" int); create table good (id int primary key)')

    assert members(env16) == {"t", "good"}
    (message,) = messages(env16, "target-clash")
    assert "public.bad" in message
    assert "_row_id" in message


@pytest.mark.parametrize(
    ("change", "back"),
    [
        ('alter table u add column "_file" text', 'alter table u rename "_file" to file'),
        ('alter table u rename v to "_pos"', 'alter table u rename "_pos" to v'),
        ('alter table u add column "_misfits" text', 'alter table u drop column "_misfits"'),
    ],
)
def test_a_table_that_gets_such_a_column_later_is_paused_alone_until_it_is_renamed(
    env16: PipelineEnv, change: str, back: str
) -> None:
    begin(env16, "create table t (id int primary key); create table u (id int primary key, v text)")
    env16.land(f"{change}; insert into u (id) values (7); insert into t values (7)")

    assert states(env16) == {"t": "copied", "u": "paused"}
    assert "lake's tables keep for themselves" in messages(env16, "target-clash")[-1]
    assert waiting.tables_to_announce(env16.ctx) == [], "a copy would not help"
    assert to_copy(env16.ctx, None) == []
    with pytest.raises(LakeError, match=r"target-clash.*keep for themselves"):
        resume_table(env16.ctx, "public.u")

    env16.sql(back)
    assert [table.name for table in to_copy(env16.ctx, ["public.u"])] == ["u"], "a person's resync"

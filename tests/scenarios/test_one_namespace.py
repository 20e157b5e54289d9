"""Two pipelines of one ledger may not have their tables, and their tables of cuts, in one namespace of the lake."""

from dataclasses import replace

import pytest

from penstock.errors import ConfigError
from penstock.flow import check
from penstock.flow.load import bootstrap
from penstock.flow.merge import run as merge
from tests.pipeline_env import PipelineEnv
from tests.scenarios.members import begin

REFUSED = (
    r"config-invalid.*expected pipeline second to have a namespace of its own, got \w+\.{}, in which pipeline {} has"
)


def beside(env: PipelineEnv, namespace: str) -> PipelineEnv:
    """Another pipeline of the same source and the same ledger."""
    names = {"slot": f"second_{env.source.name}", "publication": f"second_{env.source.name}"}
    return replace(env, name="second", settings={"source": names, "lake": {"namespace": namespace}}, lines=[])


def test_the_second_pipeline_in_a_namespace_is_refused_by_check_and_before_it_makes_anything(
    env16: PipelineEnv,
) -> None:
    begin(env16)
    second = beside(env16, env16.name)

    found = [(each.level, each.slug) for each in check.check(second.ctx) if each.subject == "lake.namespace"]
    assert found == [("error", "config-invalid")]
    with pytest.raises(ConfigError, match=REFUSED.format(env16.name, env16.name)):
        bootstrap.prepare(second.ctx)
    assert (
        second.sql(f"select pubname::text from pg_publication where pubname = '{second.ctx.pipeline.publication}'")
        == []
    )

    env16.ctx.ledger.pipelines.tear_down(env16.name)
    bootstrap.prepare(second.ctx)
    with pytest.raises(
        ConfigError, match=r"expected pipeline w\d+ to have a namespace of its own.*pipeline second has"
    ):
        bootstrap.prepare(env16.ctx)


def test_a_file_that_moves_a_running_pipeline_into_anothers_namespace_is_refused_at_its_next_merge(
    env16: PipelineEnv,
) -> None:
    begin(env16)
    second = beside(env16, "of_its_own")
    bootstrap.prepare(second.ctx)

    second.settings["lake"]["namespace"] = env16.name
    with pytest.raises(ConfigError, match=REFUSED.format(env16.name, env16.name)):
        merge.plan(second.ctx)

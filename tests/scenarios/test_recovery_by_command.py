"""The commands of the runbooks, as a person on call types them."""

from pathlib import Path

import pytest

from penstock.cli.options import Status
from tests.env_fixtures import Command
from tests.pipeline_env import PipelineEnv
from tests.scenarios.recovery import LANDED, LOST, SHOP, follows

pytestmark = pytest.mark.spark


@pytest.mark.slow
def test_a_dropped_slot_is_found_looked_at_and_recovered_by_command(env16: PipelineEnv, penstock: Command) -> None:
    env16.sql(SHOP)
    assert penstock("bootstrap").exit_code == 0
    env16.flush(LANDED)
    assert penstock("capture").exit_code == 0
    assert "[nothing-to-recover]" in penstock("recover").output

    env16.sql(LOST)
    env16.sql(f"select pg_drop_replication_slot('{env16.ctx.pipeline.slot}')")
    halted = penstock("capture")
    assert halted.exit_code == Status.DECIDE
    assert "docs/runbooks/slot-missing.md" in halted.output
    refused = penstock("resume")
    assert refused.exit_code == Status.DECIDE
    assert "[slot-missing]" in refused.output

    preview = penstock("recover")
    assert preview.exit_code == 0, preview.output
    assert "lost to the stream: changes from" in preview.output
    assert env16.ctx.ledger.pipelines.get(env16.name).era == 1

    done = penstock("recover", "--no-dry-run")
    assert done.exit_code == 0, done.output
    assert env16.unlike() == []
    assert "gap after era 1" in penstock("status").output
    follows(env16)


@pytest.mark.slow
def test_what_is_landed_and_gone_is_left_out_by_command(env16: PipelineEnv, penstock: Command) -> None:
    env16.sql(SHOP)
    assert penstock("bootstrap").exit_code == 0
    env16.flush(LANDED)
    assert penstock("capture").exit_code == 0
    for window in env16.ctx.ledger.windows.all(env16.name):
        for entry in window.files:
            Path(env16.landing, entry.path).unlink()
    for verb in ("merge", "resume"):
        failed = penstock(verb)
        assert (failed.exit_code, "landing-file-missing" in failed.output) == (Status.DECIDE, True)

    assert "where the cause is fixed, resume is enough" in penstock("recover").output
    failed = penstock("recover", "--no-dry-run")
    assert (failed.exit_code, "landing-file-missing" in failed.output) == (Status.DECIDE, True)
    assert env16.ctx.ledger.pipelines.get(env16.name).era == 1, "nothing is left behind before a person says so"

    done = penstock("recover", "--no-dry-run", "--no-merge-first")
    assert done.exit_code == 0, done.output
    assert env16.unlike() == []
    follows(env16)


@pytest.mark.slow
def test_a_verification_by_command_captures_and_merges_by_itself_and_ends_with_a_status(
    env16: PipelineEnv, penstock: Command, tmp_path: Path
) -> None:
    env16.sql(SHOP)
    assert penstock("bootstrap").exit_code == 0
    env16.sql(LANDED)

    equal_ = penstock("verify")
    assert equal_.exit_code == 0, equal_.output
    assert "differs 0" in equal_.output
    assert "verified through" in penstock("status").output
    unknown = penstock("verify", "--table", "public.no_delivery")
    assert unknown.exit_code == Status.REFUSED
    assert "[table-unknown]" in unknown.output

    name = env16.tables[0].name
    env16.spark.sql(f"delete from lake.{env16.name}.public.`{name}`")
    env16.believe(name)
    differs = penstock("verify", "--table", f"public.{name}")
    assert differs.exit_code == Status.FOUND
    assert "[verify-differs]" in differs.output
    assert "docs/runbooks/verify-differs.md" in differs.output
    assert f"differs public.{name}" in penstock("status").output

    file = tmp_path / "pipeline.yaml"
    file.write_text(file.read_text() + "verify: {on_difference: resync}\n")
    assert penstock("verify", "--table", f"public.{name}").exit_code == Status.FOUND, (
        "it did differ, and was copied again"
    )
    after_repair = penstock("verify", "--table", f"public.{name}")
    assert after_repair.exit_code == 0, after_repair.output
    assert f"differs public.{name}" not in penstock("status").output

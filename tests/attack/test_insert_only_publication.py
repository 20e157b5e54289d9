"""A publication that sends inserts only promises no updates and no deletes: verify compares what it promises."""

import pytest

from penstock.compare.report import Comparison, TableComparison, unpromised
from penstock.flow.verify.run import verify
from tests.pipeline_env import PipelineEnv

ALL = ("insert", "update", "delete", "truncate", "via_root")


@pytest.mark.parametrize(
    ("sent", "keyed", "left_out"),
    [
        (ALL, True, ()),
        (ALL, False, ()),
        (("insert",), True, ("extra", "different")),
        (("insert",), False, ("missing", "extra", "different")),
        (("insert", "update"), True, ("extra",)),
        (("insert", "update", "delete"), True, ("extra",)),
        (("update", "delete", "truncate"), True, ("missing",)),
    ],
)
def test_what_is_not_sent_is_not_promised(sent: tuple[str, ...], keyed: bool, left_out: tuple[str, ...]) -> None:
    assert unpromised(sent, keyed=keyed) == left_out


def test_a_row_that_an_insert_only_publication_must_have_brought_is_still_missed() -> None:
    left_out = ("extra", "different")
    changed = TableComparison("public", "t", ("s", "t"), extra=3, different=2, unpromised=left_out)
    lost = TableComparison("public", "t", ("s", "t"), missing=1, extra=3, different=2, unpromised=left_out)

    assert changed.equal
    assert changed.left_out == {"extra": 3, "different": 2}
    assert not lost.equal
    assert lost.broken == {"missing": 1, "extra": 0, "different": 0}
    assert "3 extra, 2 different" in "\n".join(changed.lines())


@pytest.mark.slow
@pytest.mark.spark
def test_verify_says_what_an_insert_only_publication_leaves_out_and_raises_no_alarm(env16: PipelineEnv) -> None:
    name = env16.ctx.pipeline.publication
    env16.settings["source"] = {**env16.settings["source"], "adopt": True}
    env16.bootstrap(
        "create table t (id int primary key, v int); insert into t select n, n from generate_series(1, 20) n;"
        f"create publication {name} for table only t with (publish = 'insert')"
    )
    env16.flush("update t set v = -v where id < 4; delete from t where id > 18; insert into t values (100, 1)")

    found = verified(env16)

    assert found.differing == []
    (finding,) = found.tables
    assert (finding.outcome, set(finding.broken.values())) == ("equal", {0})
    assert finding.left_out == {"extra": 2, "different": 3}
    assert any("does not send every kind of change: 2 extra, 3 different" in line for line in env16.lines)
    assert env16.ctx.ledger.health.alarms(env16.name) == []


def verified(env: PipelineEnv) -> Comparison:
    def merge() -> str:
        env.merge()
        return "merged"

    return verify(env.ctx, merge=merge)

"""The windows of a backlog follow the time that earlier ones took, as the ledger remembers it."""

from tests.pipeline_env import PipelineEnv

MIB = 1 << 20
FILLER = "select pg_logical_emit_message(false, 'filler', repeat('x', 1 << 20)) from generate_series(1, %s)"


def fill(env: PipelineEnv, mebibytes: int) -> None:
    """Write so much WAL, flush it by a commit, and let the slot's restart point follow: what is read again counts too."""
    env.sql(FILLER % mebibytes)
    env.sql("checkpoint")
    env.sql("insert into t select coalesce(max(id), 0) + 1 from t")


def sizes(env: PipelineEnv) -> list[int]:
    return [window.upto_lsn - window.from_lsn for window in env.capture().windows]


def test_a_backlog_is_taken_in_windows_that_grow_or_shrink_by_what_the_last_ones_took(env16: PipelineEnv) -> None:
    env16.begin("create table t (id int primary key)")
    env16.settings["capture"] = {"max_wal_bytes": "3MiB", "window_seconds": "1h"}
    fill(env16, 8)

    at_ceiling = sizes(env16)
    assert at_ceiling[:2] == [3 * MIB, 3 * MIB]
    assert sum(at_ceiling) >= 8 * MIB

    env16.ledger.execute("update penstock.window set seconds = 36000")  # ten times too long
    fill(env16, 3)
    small = sizes(env16)
    assert small[0] == MIB
    assert max(small[:2]) < 3 * MIB

    env16.ledger.execute("update penstock.window set seconds = 0.1")
    fill(env16, 8)
    assert sizes(env16)[0] == 3 * MIB

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


def test_a_backlog_is_taken_in_windows_that_grow_or_shrink_by_what_the_last_ones_took(
    landing_env16: PipelineEnv,
) -> None:
    landing_env16.begin("create table t (id int primary key)")
    landing_env16.settings["capture"] = {"max_wal_bytes": "3MiB", "window_seconds": "1h"}
    fill(landing_env16, 8)

    at_ceiling = sizes(landing_env16)
    assert at_ceiling[:2] == [3 * MIB, 3 * MIB]
    assert sum(at_ceiling) >= 8 * MIB

    landing_env16.ledger.execute("update penstock.window set seconds = 36000")  # ten times too long
    fill(landing_env16, 3)
    small = sizes(landing_env16)
    assert small[0] == MIB
    assert max(small[:2]) < 3 * MIB

    landing_env16.ledger.execute("update penstock.window set seconds = 0.1")
    fill(landing_env16, 8)
    assert sizes(landing_env16)[0] == 3 * MIB

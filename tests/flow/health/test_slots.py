"""Each alarm of a slot provoked for real, and each way in which a slot is dropped or not."""

from collections.abc import Iterator

import pytest

from penstock.errors import PenstockError, SourceError
from penstock.flow.capture import run as capture
from penstock.flow.guards import slot_work
from penstock.flow.health import report, run
from penstock.flow.recover.teardown import teardown
from penstock.source import session
from tests.flow.health.conftest import NewWatched, Watched, streaming
from tests.waiting import wait_until

RULE = {"name": "report*", "inactive": 1, "retained": 1}


def eventually(watched: Watched, slug: str) -> None:
    """Look until an alarm should be open; ages grow by the second."""
    wait_until(lambda: slug in {finding.slug for finding in watched.look().findings}, slug, pause=0.3)


def test_an_idle_slot_goes_from_warn_to_critical_to_unreserved_to_lost(watched: Watched) -> None:
    watched.check()
    assert watched.open_alarms() == {}

    watched.noise(20)
    watched.check()
    assert watched.open_alarms() == {"slot-retained": "warn", "slot-unread": "warn"}
    watched.noise(20)
    assert watched.check().drain
    assert watched.open_alarms() == {"slot-retained": "critical", "slot-unread": "critical"}
    watched.noise(60)
    watched.check()
    assert watched.open_alarms()["slot-unreserved"] == "critical"
    watched.env.sql("checkpoint")
    watched.check()
    assert watched.open_alarms() == {"slot-lost": "critical"}

    assert watched.slots() == {watched.slot}, "a dry run drops nothing"
    happenings = [(alert.happening, alert.alarm.slug) for alert in watched.delivered]
    assert happenings.count(("opened", "slot-retained")) == happenings.count(("closed", "slot-retained")) == 1
    assert happenings.count(("raised", "slot-retained")) == happenings.count(("opened", "slot-lost")) == 1
    assert any("dry run, would run" in line for line in watched.env.lines)


def test_a_lost_slot_is_dropped_when_it_may_be_and_the_pipeline_halts_with_the_way_out(watched: Watched) -> None:
    watched.noise(110)
    watched.env.sql("checkpoint")
    watched.check()
    assert watched.slots() == {watched.slot}

    watched.policy(dry_run=False)
    watched.check()

    assert watched.slots() == set()
    record = watched.env.ctx.ledger.pipelines.get(watched.env.name)
    assert (record.state, record.halted_slug) == ("halted", "slot-dropped")
    assert f"{watched.env.name}.recover" in str(record.halted_reason)
    assert any("pg_drop_replication_slot" in message for message in watched.events("slot-dropped"))
    with pytest.raises(PenstockError, match=r"halted by slot-dropped"):
        capture.capture(watched.env.ctx)
    watched.check()
    assert watched.open_alarms() == {"pipeline-halted": "critical"}


def test_the_own_slot_is_dropped_beyond_its_limit_only_after_its_patience_and_without_dry_run(watched: Watched) -> None:
    watched.policy(drop={"patience": 1}, drain=False)
    watched.noise(40)
    watched.check()
    wait_until(lambda: watched.check().drops, "a slot to drop", pause=0.3)
    assert watched.slots() == {watched.slot}

    watched.policy(dry_run=False)
    watched.check()

    assert watched.slots() == set()
    (event,) = [
        e
        for e in watched.env.ctx.ledger.events.all(watched.env.name, limit=50)
        if e.slug == "slot-dropped" and "ran:" in e.message
    ]
    assert event.details["retained"] >= event.details["drop"]


def test_draining_frees_the_wal_in_larger_windows_and_the_alarms_close(watched: Watched) -> None:
    from penstock.flow.health.run import drain  # noqa: PLC0415

    watched.env.settings["capture"] = {"max_wal_bytes": "4MiB"}
    watched.env.sql("insert into t select n, repeat('y', 100) from generate_series(2, 1000) n")
    watched.noise(40)
    assert watched.check().drain
    # restart_lsn follows to a record of the running transactions: servers write one here, and every 15 seconds
    watched.env.sql("checkpoint")

    done = drain(watched.env.ctx)

    assert (done.changes, done.caught_up) == (999, True)
    assert len(done.windows) <= 4
    watched.check()
    assert watched.open_alarms() == {}
    assert any("drained" in message for message in watched.events("slot-retained"))


def test_a_slot_dropped_by_hand_is_missed(watched: Watched) -> None:
    watched.env.sql(f"select pg_drop_replication_slot('{watched.slot}')")
    watched.check()

    assert watched.open_alarms() == {"slot-missing": "critical"}


def test_the_slot_of_a_pipeline_without_a_table_is_an_orphan_and_goes(watched: Watched) -> None:
    watched.without_tables()
    watched.check()
    assert watched.open_alarms() == {"slot-orphaned": "critical"}
    assert watched.slots() == {watched.slot}

    watched.policy(dry_run=False)
    watched.check()

    assert watched.slots() == set()
    assert watched.env.ctx.ledger.pipelines.get(watched.env.name).halted_slug == "slot-dropped"


def test_after_a_teardown_the_slot_that_another_installation_made_is_left_alone(watched: Watched) -> None:
    watched.policy(dry_run=False)
    teardown(watched.env.ctx, dry_run=False)
    watched.env.sql(f"select pg_create_logical_replication_slot('{watched.slot}', 'pgoutput')")
    watched.env.sql(f"create publication {watched.env.ctx.pipeline.publication} for table t")
    watched.env.sql(
        f"comment on publication {watched.env.ctx.pipeline.publication} is 'made by penstock for pipeline {watched.env.name}'"
    )
    try:
        watched.noise(110)
        watched.env.sql("checkpoint")
        watched.check()
        assert watched.open_alarms() == {}
        assert teardown(watched.env.ctx, dry_run=False) == []
        assert watched.slots() == {watched.slot}
    finally:
        watched.env.sql(f"select pg_drop_replication_slot('{watched.slot}')")


@pytest.mark.parametrize("made", ["by another", "adopted"])
def test_a_lost_slot_that_is_not_the_one_that_penstock_made_is_told_and_left_alone(watched: Watched, made: str) -> None:
    watched.policy(dry_run=False)
    if made == "adopted":
        watched.env.ledger.execute("update penstock.pipeline set slot_made = false")
    else:
        watched.env.sql(f"select pg_drop_replication_slot('{watched.slot}')")
        watched.env.sql(f"select pg_create_logical_replication_slot('{watched.slot}', 'pgoutput')")
    watched.noise(110)
    watched.env.sql("checkpoint")
    watched.check()

    assert watched.open_alarms() == {"slot-lost": "critical"}
    assert watched.slots() == {watched.slot}
    watched.env.sql(f"select pg_drop_replication_slot('{watched.slot}')")


def test_an_abandoned_slot_of_another_owner_is_reported_and_dropped_only_by_a_rule_without_dry_run(
    watched: Watched,
) -> None:
    foreign = watched.foreign(f"reporting_{watched.env.name}")
    try:
        watched.policy(watch={"abandoned": 1})
        watched.noise(20)
        capture.capture(watched.env.ctx)
        watched.check()
        eventually(watched, "slot-abandoned")
        watched.check()
        assert watched.open_alarms()["slot-abandoned"] == "warn"

        watched.policy(dry_run=False)
        watched.check()
        assert foreign in watched.slots(), "no rule names it"
        watched.policy(dry_run=True, drop={"foreign": [RULE]})
        watched.check()
        assert foreign in watched.slots(), "a dry run"

        watched.policy(dry_run=False)
        watched.check()
        assert foreign not in watched.slots()
        assert any("rule 'report*'" in message for message in watched.events("slot-abandoned"))
        assert watched.env.ctx.ledger.pipelines.get(watched.env.name).state == "running"
    finally:
        if foreign in watched.slots():
            watched.env.sql(f"select pg_drop_replication_slot('{foreign}')")


@pytest.fixture
def foreign_due(watched: Watched) -> Iterator[str]:
    """A foreign slot that a rule drops; the health check has judged it inactive."""
    foreign = watched.foreign(f"reporting_{watched.env.name}")
    watched.policy(dry_run=False, drop={"foreign": [RULE]})
    watched.noise(1)
    watched.env.ctx.ledger.health.record_slot_samples(watched.env.name, watched.look().facts.samples.values())
    wait_until(lambda: watched.look().drops, "a slot to drop", pause=0.3)
    yield foreign
    if foreign in watched.slots():
        watched.env.sql(f"select pg_drop_replication_slot('{foreign}')")


def test_a_slot_that_another_session_took_between_the_decision_and_the_drop_stays(
    watched: Watched, foreign_due: str
) -> None:
    verdict = watched.look()
    reader = streaming(watched.env.source, foreign_due)
    try:
        run.act(watched.env.ctx, verdict, watched.deliver)
        assert foreign_due in watched.slots()
        assert any("did not drop" in message for message in watched.events("slot-abandoned"))
        assert watched.look().drops == (), "an active slot is not even judged"
    finally:
        reader.close()


def test_a_slot_that_moved_between_the_decision_and_the_drop_stays(watched: Watched, foreign_due: str) -> None:
    verdict = watched.look()
    watched.env.sql(f"select pg_replication_slot_advance('{foreign_due}', pg_current_wal_flush_lsn())")

    run.act(watched.env.ctx, verdict, watched.deliver)

    assert foreign_due in watched.slots()
    assert any("moved" in message for message in watched.events("slot-abandoned"))


def test_a_slot_that_was_replaced_between_the_decision_and_the_drop_stays(watched: Watched, foreign_due: str) -> None:
    verdict = watched.look()
    watched.env.sql(f"select pg_drop_replication_slot('{foreign_due}')")
    watched.foreign(foreign_due)

    run.act(watched.env.ctx, verdict, watched.deliver)

    assert foreign_due in watched.slots()


def test_a_slot_that_no_rule_names_stays_when_another_one_goes(watched: Watched, foreign_due: str) -> None:
    kept = watched.foreign(f"crm_{watched.env.name}")
    physical = f"report_physical_{watched.env.name}"
    watched.env.sql(f"select pg_create_physical_replication_slot('{physical}', true)")
    try:
        watched.noise(1)
        watched.check()

        assert watched.slots() == {watched.slot, kept, physical}
    finally:
        for name in (kept, physical):
            watched.env.sql(f"select pg_drop_replication_slot('{name}')")


def test_a_slot_of_another_database_stays_unless_the_rule_names_the_database(
    watched: Watched, watched_on: NewWatched
) -> None:
    other = watched_on(watched.env.source.server)
    foreign = other.foreign(f"reporting_{other.env.name}")
    watched.policy(dry_run=False, drop={"foreign": [RULE]})
    watched.noise(1)
    watched.check()
    wait_until(lambda: watched.look().facts.samples[foreign].inactive_since is not None, "an inactive slot")
    watched.check()
    assert foreign in watched.slots()

    watched.policy(drop={"foreign": [{**RULE, "database": other.env.name}]})
    eventually_dropped(watched, foreign)
    assert other.slot in watched.slots(), "another pipeline's slot"


def eventually_dropped(watched: Watched, slot: str) -> None:
    def dropped() -> bool:
        watched.check()
        return slot not in watched.slots()

    wait_until(dropped, f"{slot} is dropped", pause=0.3)


def test_the_own_slot_stays_while_a_capture_is_at_work(watched: Watched) -> None:
    watched.noise(110)
    watched.env.sql("checkpoint")
    watched.policy(dry_run=False)
    with slot_work(watched.env.ctx):
        watched.check()

    assert watched.slots() == {watched.slot}
    assert watched.env.ctx.ledger.pipelines.get(watched.env.name).state == "running"
    assert any("did not drop" in message for message in watched.events("slot-dropped"))


def test_a_transaction_that_stays_open_is_named_and_the_alarm_closes_with_it(watched: Watched) -> None:
    watched.policy(watch={"transaction": 1})
    with watched.env.source.connect(autocommit=False, application_name="nightly") as writer:
        writer.execute("insert into t values (99, 'a secret value')")
        eventually(watched, "transaction-open-long")
        watched.check()
        (alert,) = watched.delivered
        assert "nightly" in alert.text()
        assert "secret" not in alert.text()
        writer.rollback()

    watched.check()
    assert watched.open_alarms() == {}


def test_a_forgotten_prepared_transaction_is_named(watched: Watched) -> None:
    watched.policy(watch={"transaction": 1})
    with watched.env.source.connect(autocommit=False) as writer:
        writer.execute("insert into t values (98, 'x')")
        writer.execute(f"prepare transaction 'forgotten_{watched.env.name}'".encode())
    eventually(watched, "transaction-prepared-long")
    watched.check()

    assert watched.open_alarms()["transaction-prepared-long"] == "warn"
    assert f'prepared "forgotten_{watched.env.name}"' in watched.delivered[0].text()


def test_a_paused_capture_is_an_alarm_and_nothing_is_drained(watched: Watched) -> None:
    watched.noise(40)

    assert not watched.check(capture=True).drain
    assert watched.open_alarms()["capture-paused"] == "critical"


def test_a_source_that_cannot_be_asked_is_an_alarm_that_closes_when_it_answers(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = watched.env.source.server
    password = server.password
    server.password = "not the password"
    try:
        with pytest.raises(SourceError):
            watched.check()
    finally:
        server.password = password

    assert watched.open_alarms() == {"source-unreachable": "critical"}
    assert [alert.alarm.slug for alert in watched.delivered] == ["source-unreachable"]
    watched.check()
    assert watched.open_alarms() == {}


def test_a_pipeline_that_no_one_bootstrapped_is_looked_at_and_nothing_is_recorded(watched: Watched) -> None:
    watched.env.name = "unknown"
    watched.noise(40)
    watched.check()

    assert watched.delivered == []
    assert any("the ledger does not know it" in line for line in watched.env.lines)


def test_samples_carry_the_limits_and_old_ones_are_forgotten(watched: Watched) -> None:
    watched.check()
    ledger, name = watched.env.ctx.ledger, watched.env.name
    (sample,) = ledger.health.slot_samples(name, watched.slot)
    assert sample.details["limits"]["warn"] == 16 << 20
    assert sample.retained is not None

    watched.policy(keep=1)
    wait_until(
        lambda: watched.check() and sample not in ledger.health.slot_samples(name, watched.slot), "it is forgotten"
    )


def test_a_role_without_rights_is_shown_what_it_could_not_see(watched: Watched) -> None:
    env = watched.env
    role = f"blind_{env.name}"
    env.sql(f"create role {role} login replication password 'of the role'")
    try:
        with env.source.connect(autocommit=False) as writer:
            writer.execute("insert into t values (97, 'x')")
            poor = type(env.ctx.source)(
                "source", "127.0.0.1", env.source.server.port, role, "of the role", env.source.name
            )
            with session.connect(poor, what="test") as conn:
                from penstock.source import health  # noqa: PLC0415

                seen = health.read_health(conn, publication="p")
            writer.rollback()
    finally:
        env.sql(f"drop role {role}")

    assert seen.wal_directory is None
    assert len(seen.unseen) == 2
    assert [each.age_seconds for each in seen.transactions] == [None]
    assert next(slot for slot in seen.slots if slot.name == watched.slot).retained is not None


def test_the_report_reads_well_and_is_plain_data_too(watched: Watched) -> None:
    watched.noise(20)
    verdict = watched.look()
    lines = dict(report.lines(verdict))
    plain = report.plain(verdict)

    assert "keeps" in lines["warn slot-retained"]
    assert lines["alerts go to"].startswith("no one")
    assert plain["alarms"][0]["slug"] == "slot-retained"
    assert report.gauges(verdict)["penstock.slot.retained_bytes"] >= 20 << 20

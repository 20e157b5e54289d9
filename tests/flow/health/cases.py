"""Observations for the pure tests: a healthy pipeline, of which each test changes what it is about."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from penstock.config.model import Pipeline
from penstock.config.policy import Health
from penstock.flow.health.airflow_state import DagState
from penstock.flow.health.input import HealthInput, SlotInput
from penstock.flow.health.judge import Verdict, judge
from penstock.flow.health.limits import sample
from penstock.ledger.health import AlarmRecord, SlotSample
from penstock.ledger.records import PipelineRecord
from penstock.ledger.work import TaskOutcome
from penstock.lsn import Lsn
from penstock.source.health import SourceHealth, Surroundings
from penstock.source.server_info import ServerFacts
from penstock.source.slot import SlotFacts

MIB, GIB = 1 << 20, 1 << 30
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
FLUSHED = Lsn(100 * GIB)

SERVER = ServerFacts(
    version_num=160014,
    version="16.14",
    system_identifier=7,
    timeline=1,
    database="shop",
    in_recovery=False,
    wal_level="logical",
    encoding="UTF8",
    max_replication_slots=20,
    max_wal_senders=20,
    max_slot_wal_keep_size=None,
    temp_file_limit=None,
    idle_slot_timeout=0,
    output_plugins=None,
)
AROUND = Surroundings(NOW, 1, 0, False, None)
OWN = SlotFacts(
    name="penstock_shop",
    plugin="pgoutput",
    slot_type="logical",
    database="shop",
    temporary=False,
    active=False,
    active_pid=None,
    catalog_xmin_age=10,
    restart=Lsn(FLUSHED - 2000),
    confirmed=Lsn(FLUSHED - 1000),
    wal_status="reserved",
    safe_wal_size=None,
    two_phase=False,
    invalidation=None,
    inactive_since=None,
    synced=False,
    retained=2000,
    unread=1000,
)
SHOP = Pipeline.model_validate({"name": "shop", "tables": {"include": ["*.*"]}, "landing": {"uri": "/landing"}})
OTHER = replace(OWN, name="reporting", plugin="test_decoding")
RECORD = PipelineRecord(
    name="shop",
    state="running",
    database="shop",
    slot="penstock_shop",
    publication="penstock_shop",
    system_identifier=7,
    timeline=1,
    publication_oid=5,
    slot_intent_at=NOW,
    consistent_point=Lsn(1),
    position=Lsn(FLUSHED - 1000),
    halted_slug=None,
    halted_reason=None,
    halted_from=None,
    merge_attempt=None,
    created_at=NOW,
    era=1,
    slot_made=True,
    publishing=None,
    unproved_from=None,
    landing_mark=None,
    landing_marked=False,
)


def failed(dag: str, task: str = "windows", ago: int = 0, slug: str | None = None) -> TaskOutcome:
    """A task that fails since that many seconds."""
    since = NOW - timedelta(seconds=ago)
    return TaskOutcome(dag, task, "run 7", since, since, slug)


def behind(slot: SlotFacts = OWN, *, retained: int, unread: int | None = None, **changes: Any) -> SlotFacts:
    """The slot, that far behind."""
    unread = retained if unread is None else unread
    places = {"restart": Lsn(FLUSHED - retained), "confirmed": Lsn(FLUSHED - unread)}
    return replace(slot, **{**places, "retained": retained, "unread": unread, **changes})


def lake_facts(keys: Any = None, **changes: Any) -> HealthInput:
    """What is judged without a source, of a pipeline with these settings; changes of the whole."""
    pipeline = Pipeline.model_validate({**SHOP.model_dump(by_alias=True), **(keys or {})})
    return HealthInput(**{"pipeline": pipeline, "at": NOW, **changes})


def facts(*slots: SlotFacts, rules: Health | None = None, **changes: Any) -> SlotInput:
    """A check that saw these slots; changes of the server, its surroundings or the whole."""
    server, around = (_changed(known, changes) for known in (SERVER, AROUND))
    source = _changed(SourceHealth(server, around, FLUSHED, slots, (), None, ()), changes)
    whole = SlotInput(
        pipeline=SHOP if rules is None else SHOP.model_copy(update={"health": rules}),
        at=NOW,
        airflow={"capture": DagState(paused=False)},
        source=source,
        record=RECORD,
        tables=3,
        known_tables=3,
    )
    return replace(whole, **changes)


def _changed(known: Any, changes: dict[str, Any]) -> Any:
    """A part with those of the changes that are its own, which are taken out."""
    return replace(known, **{name: changes.pop(name) for name in list(changes) if hasattr(known, name)})


def remembered(slot: SlotFacts, ago: int, **changes: Any) -> SlotSample:
    """What a check has seen of a slot that many seconds ago; it stood still since."""
    at = NOW - timedelta(seconds=ago)
    seen = sample(facts(slot).source, slot, slot.name == OWN.name, None)
    return replace(seen, at=at, unchanged_since=at, **{"inactive_since": at, **changes})


def policy(**keys: Any) -> Health:
    return Health.model_validate(keys)


def verdict(*slots: SlotFacts, **changes: Any) -> Verdict:
    return judge(facts(*slots, **changes))


def levels(found: Verdict) -> dict[str, str]:
    """The alarms that should be open, with their levels."""
    return {finding.slug: finding.level for finding in found.findings}


def alarm(
    slug: str = "slot-retained", level: str = "warn", subject: str = "penstock_shop", **changes: Any
) -> AlarmRecord:
    known: dict[str, Any] = {
        "number": 1,
        "pipeline": "shop",
        "slug": slug,
        "subject": subject,
        "level": level,
        "message": "slot penstock_shop keeps 2.0 GiB of WAL, the warn limit is 1.0 GiB",
        "numbers": {"retained": 2 * GIB, "next": "it does not grow"},
        "opened_at": NOW - timedelta(hours=2),
        "seen_at": NOW,
        "last_notified_at": None,
        "last_notified_level": None,
        "closed_at": None,
    }
    return AlarmRecord(**{**known, **changes})

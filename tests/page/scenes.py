"""Pipelines as a person meets them, written into a real ledger: one that is well, and what goes wrong.

Pipelines, tables and alarms come about as in production; the long past of windows, cuts and samples is written by
the statements below, because thirty days are too long to wait for it.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from penstock.conditions import Level
from penstock.errors import Trouble
from penstock.ledger import Ledger
from penstock.ledger.health import Finding
from penstock.ledger.loads import BuildStep, NewBuild
from penstock.ledger.records import Level as EventLevel
from penstock.lsn import Lsn
from penstock.shapes.accepted import Accepted, TableFacts
from penstock.shapes.mirror_column import MirrorColumn
from penstock.values.pgtype import PgType
from stack.servers.postgres import Database
from tests.page.airflow_rows import make_dags
from tests.shapes.tables import shape

START = Lsn.parse("16/10000000")
MIB, GIB = 1 << 20, 1 << 30
ORDER = 16402
TABLES = ("customer", "order", "order_line", "payment", "product", "audit_log")

WINDOWS = """
insert into penstock.window
    (pipeline, from_lsn, upto_lsn, attempt, state, rows, bytes, transactions, files, settings_digest, source_time,
     planned_at, staged_at, confirmed_at, seconds)
select
    %(name)s, %(start)s::pg_lsn + i * 8388608::numeric, %(start)s::pg_lsn + (i + 1) * 8388608::numeric,
    'attempt', 'confirmed', changes, changes * 70, changes / 9,
    case when changes = 0 then '[]'::jsonb else (
        select jsonb_agg(jsonb_build_object('oid', 16400 + t, 'rows', changes / %(tables)s, 'path', 'p', 'version', 1,
            'bytes', 1, 'min_commit_lsn', 1, 'max_commit_lsn', 2, 'columns', '[]'::jsonb))
        from generate_series(1, %(tables)s - (i %% 2)) as t
    ) end,
    'settings', at - interval '1 second', at, at + interval '2 seconds', at + interval '3 seconds',
    0.4 + changes / 60000.0
from (
    select
        i, now() - (%(count)s - i) * make_interval(secs => %(every)s) as at,
        case when i %% 7 = 3 then 0 else (9000 * (1.2 + sin(i / 80.0)) + (i::bigint * 7919) %% 4000)::int end as changes
    from generate_series(0, %(count)s - 1) as i
) as each
"""
CLOCK = """
insert into penstock.source_clock (pipeline, era, lsn, first_at, last_at, looked_at)
select pipeline, era, upto_lsn, source_time, source_time, source_time from penstock.window where pipeline = %(name)s
on conflict (pipeline, era, lsn) do update set looked_at = excluded.looked_at
"""
CUTS = """
insert into penstock.cut (pipeline, lsn, attempt, tables, rows, cuts_snapshot_id, published_at)
select
    pipeline, upto_lsn, to_char(staged_at at time zone 'utc' + interval '4 seconds', 'YYYYMMDD"t"HH24MISSMS') || '_' || number,
    (select jsonb_agg(jsonb_build_object('oid', t)) from generate_series(1, 6) as t), rows * 5, number,
    staged_at + interval '38 seconds'
from (
    select *, row_number() over (order by from_lsn) as number from penstock.window where pipeline = %(name)s
) as w
where number %% 5 = 0 and staged_at < now() - make_interval(secs => %(behind)s)
order by number
"""
TABLE_CUTS = """
insert into penstock.table_cut
    (cut, pipeline, oid, inserts, updates, deletes, truncates, rows_deleted, rows_written, seconds, rows, files, bytes)
select
    c.number, c.pipeline, t.oid, c.rows / 12, c.rows / 10, c.rows / 60, 0, c.rows / 10 + c.rows / 60, c.rows / 10 + c.rows / 12,
    0.2 + c.rows / 400000.0, sum(c.rows / 12 - c.rows / 60) over past + 40000, 3 + row_number() over past %% 9,
    (sum(c.rows / 12 - c.rows / 60) over past + 40000) * 61
from penstock.cut as c
join penstock.table as t on t.pipeline = c.pipeline and (t.oid::bigint + c.number) %% 3 > 0
where c.pipeline = %(name)s and c.rows > 0
window past as (partition by t.oid order by c.number)
"""
SAMPLES = """
insert into penstock.slot_sample
    (pipeline, at, slot, own, slot_type, database, active, confirmed_lsn, restart_lsn, flushed_lsn, unread, retained,
     wal_status, safe_wal_size, unchanged_since, catalog_xmin_age, spill_bytes, total_bytes, details)
select
    %(name)s, at, %(slot)s, %(own)s, 'logical', 'shop', false, %(lsn)s, %(lsn)s, %(lsn)s::pg_lsn + unread::numeric,
    unread, unread + 33554432 + ((i::bigint * 104729) %% 50000000), %(status)s, 21474836480 - unread, at - interval '40 seconds',
    1200, 40, 1000000, jsonb_build_object('limits', jsonb_build_object('warn', 5368709120, 'critical', 10737418240, 'drop', 10737418240))
from (
    select
        i, now() - (%(count)s - 1 - i) * make_interval(secs => %(every)s) - interval '20 seconds' as at,
        ((1.1 + sin(i / 40.0)) * 30000000 + (i::bigint * 7919) %% 9000000
            + greatest(0, i - %(count)s + %(growing)s)::numeric / %(growing)s * %(grown)s)::bigint as unread
    from generate_series(0, %(count)s - 1) as i
) as each
"""
LAKE_SAMPLES = """
insert into penstock.lake_sample
    (pipeline, at, median_seconds, worst_seconds, worst_oid, lake_bytes, landing_bytes, last_cut, cuts, changes, cut_seconds,
     merge_cpu_seconds, capture_cpu_seconds)
select
    %(name)s, now() - (%(count)s - 1 - i) * make_interval(secs => %(every)s) - interval '20 seconds', 40 + (i * 7919) %% 300,
    (40 + (i * 7919) %% 300) * (1 + greatest(0, i - %(count)s * 0.7) / 40), 16402, 3000000000 + i * 5000000::bigint,
    800000000 + ((i * 104729) %% 500000000), i, 1 + i %% 2, 9000 * (1.2 + sin(i / 40.0)), 30 + (i * 31) %% 25, i * 21.5, i * 9.5
from generate_series(0, %(count)s - 1) as i
"""


@dataclass(frozen=True)
class Scene:
    """A ledger in a database, and one pipeline in it."""

    ledger: Ledger
    database: Database
    name: str

    @property
    def slot(self) -> str:
        return f"penstock_{self.name}"

    def run(self, statement: str, **values: object) -> None:
        with self.database.connect() as connection:
            connection.execute(statement.encode(), {"name": self.name, "start": str(START), **values})

    def register(self) -> None:
        self.ledger.pipelines.register(self.name, database=self.name, slot=self.slot, publication=self.slot)

    def bootstrap(self) -> None:
        """A pipeline that runs, with its tables in the lake."""
        self.register()
        self.ledger.pipelines.intend_slot(
            self.name, system_identifier=(1 << 64) - 1, timeline=1, database=self.name, publication_oid=16400, made=True
        )
        self.ledger.pipelines.record_slot(self.name, consistent_point=START)
        self.ledger.tables.save(self.name, [facts(16401 + number, table) for number, table in enumerate(TABLES)])
        self.ledger.pipelines.finish_bootstrap(self.name)
        make_dags(self.name)

    def past(self, *, windows: int = 60, every: int = 60, behind: int = 90) -> None:
        """Windows at equal steps until now, and a cut after every fifth that is older than `behind` seconds."""
        self.run(WINDOWS, count=windows, every=every, tables=len(TABLES))
        self.run(CUTS, behind=behind)
        self.run(TABLE_CUTS)
        self.settle()

    def settle(self) -> None:
        """The pipeline stands where its windows end, and its tables are complete through the newest cut."""
        self.run(CLOCK)
        self.run(
            "update penstock.pipeline set position = (select max(upto_lsn) from penstock.window where pipeline = name)"
            " where name = %(name)s"
        )
        self.run(
            "update penstock.table set state = 'ready', complete_through ="
            " (select max(lsn) from penstock.cut where pipeline = %(name)s) where pipeline = %(name)s"
        )

    def load(self, id_: str, oid: int, **columns: object) -> None:
        """Rows of a table that were read, or are."""
        under = {"snapshot": "700:700:", "lsn": "0/1", "needs_after": "0/1", "copy_started_at": columns["started_at"]}
        known = {"id": id_, "copy_id": id_, "era": 1, **under, **columns}
        names, values = ", ".join(known), ", ".join(f"%({name})s" for name in known)
        self.run(
            f"insert into penstock.load (pipeline, oid, schema, name, target, place, identity, columns, shape, {names})"
            f" select pipeline, oid, schema, name, target, target, identity, columns, shape, {values}"
            " from penstock.table where pipeline = %(pipeline)s and oid = %(oid)s",
            pipeline=self.name,
            oid=oid,
            **known,
        )

    def samples(
        self,
        *,
        count: int = 288,
        every: int = 300,
        grown: int = 0,
        growing: int = 60,
        status: str = "reserved",
        slot: str | None = None,
    ) -> None:
        """Looks at a slot at equal steps until now; over the last `growing` of them it has `grown` by so many bytes."""
        where = self.database.execute("select position from penstock.pipeline where name = %s", self.name)[0][0]
        self.run(
            SAMPLES,
            slot=slot or self.slot,
            own=slot is None,
            lsn=where,
            count=count,
            every=every,
            grown=grown,
            growing=growing,
            status=status,
        )

    def lake_samples(self, *, count: int = 288, every: int = 300) -> None:
        """How the lake stood at equal steps until now."""
        self.run(LAKE_SAMPLES, count=count, every=every)

    def alarm(self, slug: str, level: Level, message: str, *, minutes: int = 20, subject: str | None = None) -> None:
        found, at = (
            Finding(slug, subject or self.slot, level, message),
            datetime.now(UTC) - timedelta(minutes=minutes),
        )
        self.ledger.health.reconcile_alarms(self.name, [found], judged=(), at=at)

    def event(self, slug: str, message: str, *, level: EventLevel = "info", table_oid: int | None = None) -> None:
        self.ledger.events.add(self.name, slug=slug, message=message, level=level, table_oid=table_oid)


def facts(oid: int, table: str) -> TableFacts:
    int4 = PgType(23, -1, "pg_catalog", "int4", "b")
    columns = (
        MirrorColumn("id", 1, PgType(20, -1, "pg_catalog", "int8", "b"), key=True),
        MirrorColumn("placed_at", 2, PgType(1184, -1, "pg_catalog", "timestamptz", "b")),
        MirrorColumn("amount", 3, PgType(1700, (12 << 16 | 2) + 4, "pg_catalog", "numeric", "b")),
        MirrorColumn("old_note", 4, PgType(25, -1, "pg_catalog", "text", "b"), dropped=True),
        MirrorColumn("state", 5, PgType(70001, -1, "shop", "order_state", "e"), missing_text="open"),
        MirrorColumn("squares", 6, PgType(1007, -1, "pg_catalog", "_int4", "b", element=int4), dimensions=2),
    )
    return TableFacts(oid, "shop", table, ("shop", "shop", table), "d", columns, Accepted(shape()))


def healthy(scene: Scene) -> None:
    """All is well, and has been for a day."""
    scene.bootstrap()
    scene.past(windows=1440)
    scene.samples()
    scene.lake_samples()
    scene.event("dag-failed", "shop.merge failed in scheduled__2026-11-20: task failure", level="error")


def changed_table(scene: Scene) -> None:
    """A table that has a history: it was compared, its shape was changed, and it met what it should not."""
    healthy(scene)
    oid = ORDER
    at = "select max(lsn) from penstock.cut where pipeline = %(name)s"
    scene.run(
        "with run as (insert into penstock.verification (pipeline, era, mode, lsn, started_at, finished_at)"
        f" values (%(name)s, 1, 'sample', ({at}), now() - interval '3 hours', now() - interval '3 hours') returning number)"
        " insert into penstock.verified (verification, oid, schema, name, share, shares, outcome, source_rows, lake_rows)"
        " select number, %(oid)s, 'shop', 'order', share, 4, 'equal', 12000 + share, 12000 + share"
        " from run cross join generate_series(1, 4) as share",
        oid=oid,
    )
    scene.run(
        "update penstock.table set update_missing = 3, misfits = 2, copy_id = 'first', verified_at = now() - interval '3 hours',"
        f" verified_through = ({at}) where pipeline = %(name)s and oid = %(oid)s",
        oid=oid,
    )
    began = datetime.now(UTC)
    nine, two = began - timedelta(days=9), began - timedelta(days=2)
    first = {"cause": "first", "state": "done", "attnums": [1], "rows": 41234, "bytes": 2500000}
    scene.load("first", oid, **first, started_at=nine, copied_at=nine + timedelta(seconds=47), finished_at=nine)
    columns = {"cause": "columns", "state": "landed", "attnums": [5], "whole": True, "rows": 40000, "bytes": 400000}
    scene.load("fetch", oid, **columns, started_at=two, copied_at=began)
    rows = {"cause": "partitions", "state": "copying", "attnums": [1, 5], "stays": "[]", "leaves": ["order_2026"]}
    scene.load("rows", oid, **rows, started_at=began - timedelta(days=3))
    for rule, message in (
        ("drop-column", "column old_note was dropped"),
        ("retype-column", "column amount changed its type from numeric(10,2) to numeric(12,2)"),
    ):
        details = {"rule": rule, "xid": 4711}
        scene.ledger.events.add(scene.name, slug="schema-followed", message=message, table_oid=oid, details=details)


def filling(scene: Scene) -> None:
    """Capture is paused, and the source's disk fills."""
    scene.bootstrap()
    scene.past(windows=600)
    scene.run(
        "update penstock.window set planned_at = planned_at - interval '5 hours', source_time = source_time"
        " - interval '5 hours', staged_at = staged_at - interval '5 hours' where pipeline = %(name)s"
    )
    scene.run(CLOCK)
    scene.samples(grown=12 * GIB, status="extended")
    scene.alarm(
        "slot-retained",
        "critical",
        "The slot penstock_crm keeps 12.1 GiB of WAL on the source; the limit is 10 GiB. At the present 2.4 GiB/h the "
        "server removes it in 3 h 18 min.",
    )
    make_dags(scene.name, paused=["capture"])
    scene.alarm("capture-paused", "critical", "The DAG crm.capture is paused since 22:04 UTC.", minutes=310)
    scene.alarm(
        "transaction-open-long",
        "warn",
        "A transaction of application report-builder (process 4711) has been open for 2 h 12 min.",
        subject="pid 4711",
        minutes=70,
    )
    scene.ledger.tables.stop(
        scene.name,
        {
            16406: Trouble.usual(
                "schema-change",
                "expected column 4 (amount) of shop.audit_log to be numeric(10,2), it is text now; copy the table again",
            )
        },
    )


def rebuilding(scene: Scene) -> None:
    """A replay is half-way."""
    place, copied = ("shop", "_penstock_new_again", "shop", "order_line"), datetime.now(UTC) - timedelta(days=9)
    first = {"cause": "first", "state": "done", "attnums": [1]}
    scene.load("first", 16403, **first, started_at=copied, copied_at=copied, finished_at=copied)
    scene.ledger.loads.start(scene.name, [NewBuild("again", "replay", facts(16403, "order_line"), place, "first")])
    scene.ledger.loads.run(scene.name, ids=["again"], run="run")
    step = BuildStep("again", Lsn(START + 100 * 8 * MIB), 4711, 1_234_567, "building")
    scene.ledger.loads.advance(
        scene.name, run="run", catalog=scene.ledger.connection, catalog_name="lake", pointers=[], steps=[step]
    )


def lost(scene: Scene) -> None:
    """The server has removed what the slot needed."""
    scene.bootstrap()
    scene.past(windows=300)
    scene.samples(grown=20 * GIB, status="lost")
    scene.alarm("slot-lost", "critical", "The slot penstock_billing was invalidated: wal_removed.", minutes=12)
    scene.alarm("pipeline-halted", "critical", "The pipeline is halted by slot-lost.", minutes=11)
    scene.ledger.pipelines.halt(
        scene.name,
        slug="slot-lost",
        reason="expected the slot penstock_billing to hold WAL from 16/5C000000 on, but its wal_status is lost "
        "(wal_removed); follow the runbook.",
    )


def starting(scene: Scene) -> None:
    """The first copy is under way."""
    scene.register()
    scene.ledger.tables.save(scene.name, [facts(16401 + number, table) for number, table in enumerate(TABLES)])

-- One row per run of maintenance; without an end it was killed, or is at work. `report` is what it did, per table, `error` the condition
-- that ended it without one.
create table penstock.maintenance (
    pipeline text not null references penstock.pipeline on delete cascade,
    attempt text not null,
    started_at timestamptz not null default clock_timestamp(),
    ended_at timestamptz,
    dry_run boolean not null,
    report jsonb,
    error text,
    by_task jsonb default penstock.by_task(),
    primary key (pipeline, attempt),
    check ((ended_at is null) = (coalesce(report::text, error) is null))
)

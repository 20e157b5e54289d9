-- One row per run of maintenance; without an end it was killed, or is at work. `report` is what it did, per table.
create table penstock.maintenance (
    pipeline text not null references penstock.pipeline on delete cascade,
    attempt text not null,
    started_at timestamptz not null default clock_timestamp(),
    ended_at timestamptz,
    dry_run boolean not null,
    report jsonb,
    by_task jsonb default penstock.by_task(),
    primary key (pipeline, attempt),
    check ((ended_at is null) = (report is null))
)

-- One run that compares tables at one position.
create table penstock.verification (
    number bigint primary key generated always as identity,
    pipeline text not null references penstock.pipeline on delete cascade,
    era integer not null,
    mode text not null check (mode in ('whole', 'sample')),
    lsn pg_lsn,
    started_at timestamptz not null default clock_timestamp(),
    finished_at timestamptz,
    by_task jsonb default penstock.by_task()
)

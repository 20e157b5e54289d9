create table penstock.cut (
    number bigint primary key generated always as identity,
    pipeline text not null references penstock.pipeline on delete cascade,
    era integer not null default 1,
    lsn pg_lsn not null,
    attempt text not null,
    tables jsonb not null,
    rows bigint not null default 0,
    -- the snapshot of the table of cuts that this cut was recorded with
    cuts_snapshot_id bigint not null,
    published_at timestamptz not null default clock_timestamp(),
    by_task jsonb default penstock.by_task(),
    unique (pipeline, attempt)
)

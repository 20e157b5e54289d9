create table penstock.slot_sample (
    number bigint primary key generated always as identity,
    pipeline text not null references penstock.pipeline on delete cascade,
    at timestamptz not null default clock_timestamp(),
    confirmed_lsn pg_lsn,
    restart_lsn pg_lsn,
    flushed_lsn pg_lsn,
    wal_status text,
    safe_wal_size bigint,
    active boolean,
    details jsonb not null default '{}'
)

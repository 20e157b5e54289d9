create table penstock.cut (
    number bigint primary key generated always as identity,
    pipeline text not null references penstock.pipeline on delete cascade,
    lsn pg_lsn not null,
    attempt text not null,
    tables jsonb not null,
    rows bigint not null default 0,
    published_at timestamptz not null default clock_timestamp(),
    unique (pipeline, attempt)
)

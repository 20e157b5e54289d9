create table penstock.event (
    number bigint primary key generated always as identity,
    pipeline text not null references penstock.pipeline on delete cascade,
    at timestamptz not null default clock_timestamp(),
    slug text not null,
    level text not null check (level in ('info', 'warning', 'error')),
    table_oid oid,
    message text not null,
    details jsonb not null default '{}',
    -- when those who asked for it were told; null where nobody was
    announced_at timestamptz,
    by_task jsonb default penstock.by_task()
)

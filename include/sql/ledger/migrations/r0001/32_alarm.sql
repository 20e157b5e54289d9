create table penstock.alarm (
    number bigint primary key generated always as identity,
    pipeline text not null references penstock.pipeline on delete cascade,
    slug text not null,
    subject text not null,
    level text not null check (level in ('warn', 'critical')),
    message text not null,
    numbers jsonb not null default '{}',
    opened_at timestamptz not null,
    seen_at timestamptz not null,
    last_notified_at timestamptz,
    last_notified_level text check (last_notified_level in ('warn', 'critical')),
    closed_at timestamptz,
    -- the alarm that names this one, in whose alert it stands; when that was over and this one was not
    cause text,
    freed_at timestamptz,
    by_task jsonb default penstock.by_task()
)

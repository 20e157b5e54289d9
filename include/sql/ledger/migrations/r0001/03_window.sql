-- Positions of two eras cannot be compared, since they may be those of two servers: the era is part of the key.
create table penstock.window (
    pipeline text not null references penstock.pipeline on delete cascade,
    era integer not null default 1,
    from_lsn pg_lsn not null,
    upto_lsn pg_lsn not null check (upto_lsn > from_lsn),
    attempt text not null,
    state text not null check (state in ('planned', 'staged', 'confirmed')),
    rows bigint not null default 0,
    bytes bigint not null default 0,
    transactions bigint not null default 0,
    messages bigint not null default 0,
    -- every transaction of the source below it had ended when the catalog was looked at for this window
    oldest_xid bigint,
    -- from where on the server read WAL for it: the slot's restart point
    read_from pg_lsn,
    max_xid bigint,
    files jsonb not null default '[]',
    settings_digest text not null,
    -- of the window's messages as the server sent them, after the option `origin` of the peek; null until it is staged
    digest text,
    source_time timestamptz,
    -- when its transactions committed, as the source claims: everything for a window of which that is not known
    committed tstzrange not null default '(,)',
    planned_at timestamptz not null default clock_timestamp(),
    staged_at timestamptz,
    confirmed_at timestamptz,
    seconds double precision,
    by_task jsonb default penstock.by_task(),
    primary key (pipeline, era, from_lsn),
    check ((state = 'planned') = (staged_at is null)),
    check ((state = 'confirmed') = (confirmed_at is not null))
)

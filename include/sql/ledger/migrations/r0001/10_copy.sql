create table penstock.copy (
    pipeline text not null,
    id text not null,
    oid oid not null,
    snapshot text not null,
    lsn pg_lsn not null,
    -- after which position the copy needs windows. It was worked out when the snapshot was taken and all windows were
    -- there, so it also shows that some of them are gone
    needs_after pg_lsn not null,
    state text not null default 'copying' check (state in ('copying', 'copied', 'loaded')),
    files jsonb not null default '[]',
    -- which of the table's columns those of the files are, in their order
    attnums integer[] not null,
    rows bigint not null default 0,
    bytes bigint not null default 0,
    started_at timestamptz not null default clock_timestamp(),
    finished_at timestamptz,
    by_task jsonb default penstock.by_task(),
    primary key (pipeline, id, oid),
    foreign key (pipeline, oid) references penstock.table on delete cascade,
    check ((state = 'copying') = (finished_at is null))
)

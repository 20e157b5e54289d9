-- Values of some columns that were read under a snapshot, of all that was committed before `lsn`; the merge takes them in where
-- they stand among the changes. `whole`: the columns' values of all rows. Kept as long as the table: what was copied before
-- a fetch cannot be brought forward across it.
create table penstock.column_fetch (
    pipeline text not null,
    id text not null,
    oid oid not null,
    lsn pg_lsn not null,
    attnums integer[] not null,
    whole boolean not null,
    state text not null default 'copying' check (state in ('copying', 'landed')),
    files jsonb not null default '[]',
    rows bigint not null default 0,
    bytes bigint not null default 0,
    started_at timestamptz not null default clock_timestamp(),
    landed_at timestamptz,
    primary key (pipeline, id, oid),
    foreign key (pipeline, oid) references penstock.table on delete cascade,
    check ((state = 'landed') = (landed_at is not null))
)

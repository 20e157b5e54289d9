-- Values of some columns that were read under a snapshot, of all that was committed before `lsn`; the merge takes them in where
-- they stand among the changes. `whole`: the columns' values of all rows. Kept as long as the table: what was copied before
-- a fetch cannot be brought forward across it. With `stays` whole rows were read, of the partitions that `leaves` names: they replace
-- all rows that are not within these bounds (as the digest of the table's catalog entries has them).
create table penstock.column_fetch (
    pipeline text not null,
    id text not null,
    oid oid not null,
    lsn pg_lsn not null,
    attnums integer[] not null,
    whole boolean not null,
    stays jsonb,
    leaves text[] not null default '{}',
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

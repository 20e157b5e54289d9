-- How a table's keys are cut into shares for a rolling sample, and what the newest look at each share found. The ends
-- are values of the source.
create table penstock.key_share (
    pipeline text not null,
    oid oid not null,
    share integer not null,
    wanted integer not null,
    key_column text not null,
    key_type text not null,
    indexed boolean not null,
    lower text,
    upper text,
    verified_lsn pg_lsn,
    verified_at timestamptz,
    differs boolean not null default false,
    primary key (pipeline, oid, share),
    foreign key (pipeline, oid) references penstock.table on delete cascade
)

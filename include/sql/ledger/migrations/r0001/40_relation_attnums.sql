-- Which of the table's columns those of a relation version are, in the windows from `from_lsn` on, and by which of them
-- its changes find their rows (none: by whole rows); null where that is not known.
create table penstock.relation_attnums (
    pipeline text not null references penstock.pipeline on delete cascade,
    oid oid not null,
    version integer not null,
    from_lsn pg_lsn not null,
    attnums integer[],
    key integer[],
    primary key (pipeline, oid, version, from_lsn)
)

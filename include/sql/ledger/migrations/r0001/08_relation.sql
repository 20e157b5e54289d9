-- The shapes of relations as the stream described them, by version; a version is there again from each window on in which its columns
-- were others. `attnums` are those of the table's columns that it has, and `key` are those by which its changes find their rows (none:
-- by whole rows); null where that is not known. `mapped`: the catalog was asked for the table.
create table penstock.relation (
    pipeline text not null references penstock.pipeline on delete cascade,
    oid oid not null,
    version integer not null check (version > 0),
    from_lsn pg_lsn not null,
    sent jsonb not null,
    mapped boolean not null,
    attnums integer[],
    key integer[],
    primary key (pipeline, oid, version, from_lsn)
)

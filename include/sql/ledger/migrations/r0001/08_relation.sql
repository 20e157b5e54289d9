create table penstock.relation (
    pipeline text not null references penstock.pipeline on delete cascade,
    oid oid not null,
    version integer not null check (version > 0),
    schema text not null,
    name text not null,
    replica_identity text not null,
    columns jsonb not null,
    seen_lsn pg_lsn not null,
    primary key (pipeline, oid, version)
)

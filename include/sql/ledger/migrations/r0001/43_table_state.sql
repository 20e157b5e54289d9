-- What the source's event trigger told last of a table, up to where the pipeline stands.
create table penstock.table_state (
    pipeline text not null references penstock.pipeline on delete cascade,
    oid oid not null,
    state jsonb not null,
    primary key (pipeline, oid)
)

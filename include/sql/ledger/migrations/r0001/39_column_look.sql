-- What looks at the catalog found of a table's published columns, in order: [attnum, name, type oid, typmod] each, and how many
-- attnums were given out. All of it was so by `seen_lsn`, null where that was not noted. `ddl_trigger`: the token of the source's event
-- trigger at that time, null where that was not read.
create table penstock.column_look (
    pipeline text not null references penstock.pipeline on delete cascade,
    oid oid not null,
    number integer not null check (number > 0),
    seen_lsn pg_lsn,
    count integer not null,
    columns jsonb not null,
    ddl_trigger text,
    primary key (pipeline, oid, number)
)

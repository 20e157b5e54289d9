-- What looks at the catalog found of a table's published columns, in order: [attnum, name, type oid, typmod] each; how many attnums
-- were given out; the columns that identify a row and the index that sees to that (0 for none); the columns that were not
-- published. All of it was so by `seen_lsn`, null where that was not noted. `ddl_trigger`: the token of the source's event
-- trigger at that time, null where that was not read.
create table penstock.column_look (
    pipeline text not null references penstock.pipeline on delete cascade,
    oid oid not null,
    number integer not null check (number > 0),
    seen_lsn pg_lsn,
    count integer not null,
    columns jsonb not null,
    ddl_trigger text,
    key integer[] not null,
    key_index oid not null,
    hidden integer[] not null,
    primary key (pipeline, oid, number)
)

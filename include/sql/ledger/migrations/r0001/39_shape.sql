-- The versions of a table's shape: its columns as the catalog had them, or as the source's event trigger has logged what a command left.
-- It was so by `seen_at`, null where that was not noted. `generation` is the trigger's at that time, null where that was not read.
create table penstock.shape (
    pipeline text not null references penstock.pipeline on delete cascade,
    oid oid not null,
    number integer not null check (number > 0),
    seen_at pg_lsn,
    evidence text not null check (evidence in ('catalog', 'trigger')),
    generation text,
    shape jsonb not null,
    primary key (pipeline, oid, number)
)

-- What windows up to `through` have to answer of a table, or of what is being built of it (`load`, else empty): what explains the new file
-- of a leaf, whether a rewrite has kept the values of a column, whether rows have landed with a label that an enum does not have any more.
-- `checked`: a window has been held against it. `held_back` is what is said of an altered column only once its values are known to be kept.
create table penstock.open_question (
    pipeline text not null,
    oid oid not null,
    load text not null,
    number integer not null,
    asks text not null check (asks in ('file', 'values', 'label')),
    subject bigint not null,
    through pg_lsn not null,
    checked boolean not null,
    held_back jsonb,
    -- deferrable, so that one statement may replace them
    primary key (pipeline, oid, load, number) deferrable,
    foreign key (pipeline, oid) references penstock.table on delete cascade
)

-- Partitions that the source does not have any more, or has truncated by themselves, of a table or of what is being built of it: their
-- rows go from the lake at a position, or are kept there. `bound` has columns by attnum, `file` is the one that it had with these rows.
-- Of one that is there still, `snapshot` is the text of the snapshot in which it was empty.
create table penstock.departed_partition (
    pipeline text not null,
    oid oid not null,
    load text not null,
    number integer not null,
    leaf bigint not null,
    name text not null,
    bound jsonb not null,
    lsn pg_lsn,
    kept boolean not null,
    snapshot text,
    file bigint,
    primary key (pipeline, oid, load, number) deferrable,
    foreign key (pipeline, oid) references penstock.table on delete cascade
)

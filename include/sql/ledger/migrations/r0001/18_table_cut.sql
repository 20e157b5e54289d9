-- What a cut did to one table that moved in it: changes that it took, rows that went and came, the seconds of its merge; and
-- how large the table was then.
create table penstock.table_cut (
    cut bigint not null references penstock.cut on delete cascade,
    pipeline text not null,
    oid oid not null,
    inserts bigint not null,
    updates bigint not null,
    deletes bigint not null,
    truncates bigint not null,
    rows_deleted bigint not null,
    rows_written bigint not null,
    seconds double precision not null,
    rows bigint not null,
    files bigint not null,
    bytes bigint not null,
    primary key (cut, oid)
)

-- Changes that met rows which should or should not have been there, and values that did not fit, since the table's copy;
-- the newest cut with a conflict.
alter table penstock.table
    add column update_missing bigint not null default 0,
    add column delete_missing bigint not null default 0,
    add column insert_existing bigint not null default 0,
    add column misfits bigint not null default 0,
    add column conflict_lsn pg_lsn

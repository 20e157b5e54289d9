-- What a table that is being made again has met on its way, as for a table; it takes its counts along with the name.
alter table penstock.rebuild
    add column update_missing bigint not null default 0,
    add column delete_missing bigint not null default 0,
    add column insert_existing bigint not null default 0,
    add column misfits bigint not null default 0

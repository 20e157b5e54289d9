-- Positions of two eras cannot be compared: they may be those of two servers.
alter table penstock.window
    add column era integer not null default 1,
    drop constraint window_pkey,
    add primary key (pipeline, era, from_lsn)

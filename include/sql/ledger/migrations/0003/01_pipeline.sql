alter table penstock.pipeline
    add column era integer not null default 1 check (era > 0),
    add column slot_made boolean

alter table penstock.cut add column era integer not null default 1

-- The snapshot of the table of cuts that this cut was recorded with; null where that was not written down.
alter table penstock.cut add column cuts_snapshot_id bigint

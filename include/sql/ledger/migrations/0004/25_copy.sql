-- After which position the copy needs windows, as it was when its snapshot was taken and all windows were there: whether
-- they are still there can be told by it, also when they are not. Null in copies made before this was written down.
alter table penstock.copy add column needs_after pg_lsn

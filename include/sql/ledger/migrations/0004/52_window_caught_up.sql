-- Whether the window reached the end of the WAL as it was at its source time: then all that had been committed by that
-- time is in it or in one before it.
alter table penstock.window add column caught_up boolean

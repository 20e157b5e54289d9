-- The first ledger's table was for one slot per pipeline, and nothing ever wrote to it.
drop table penstock.slot_sample

-- A number, because a driver that returns Arrow takes no void.
select 1 from pg_drop_replication_slot({slot})

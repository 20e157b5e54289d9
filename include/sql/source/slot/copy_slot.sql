-- For this session only.
select slot_name::text from pg_copy_logical_replication_slot({slot}, {copy}, true)

-- How many more replication slots the server can have; none on a standby, which is not asked to make one.
select
  case when pg_is_in_recovery() then 0 else current_setting('max_replication_slots')::int - count(*)::int end
from pg_replication_slots

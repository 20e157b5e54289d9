-- What decoding has cost each logical slot since its statistics began.
select
  s.slot_name::text as slot,
  s.spill_bytes::bigint as spill_bytes,
  s.total_bytes::bigint as total_bytes
from pg_stat_replication_slots s

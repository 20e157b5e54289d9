insert into penstock.table_state (pipeline, oid, state)
select %(name)s, s.oid, s.state
from jsonb_to_recordset(%(states)s) as s (oid oid, state jsonb)
on conflict (pipeline, oid) do update set state = excluded.state

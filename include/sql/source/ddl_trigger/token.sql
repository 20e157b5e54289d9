-- What the function of the event triggers and these are now, by the versions of their rows: whoever alters, drops or makes again one
-- of them leaves another text. Null where one is missing, restricted to some tags, or not enabled in every session.
select p.oid::text || '.' || p.xmin::text || ' ' || string_agg(e.oid::text || '.' || e.xmin::text, ' ' order by e.oid)
from pg_proc as p
join pg_namespace as n on n.oid = p.pronamespace
join pg_event_trigger as e on e.evtfoid = p.oid
where n.nspname = 'penstock_ddl' and p.proname = 'report' and p.pronargs = 0 and e.evtenabled = 'A' and e.evttags is null
group by p.oid, p.xmin
having array_agg(e.evtevent::text order by e.evtevent::text) = array['ddl_command_end', 'sql_drop', 'table_rewrite']

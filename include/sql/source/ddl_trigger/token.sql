-- What the event triggers, their functions and the secret are now, by the versions of their rows: whoever alters, drops or makes again
-- one of them leaves another text. Null where one is missing, restricted to some tags, not enabled in every session, where the
-- secret was never filled or others may read it, where the asking role may not call `wrote`, or where one of all this is
-- neither a superuser's nor theirs whose the event triggers are.
select
  p.oid::text || '.' || p.xmin::text || ' ' || w.oid::text || '.' || w.xmin::text || ' ' || s.oid::text || '.' || s.relfilenode::text || ' '
  || string_agg(e.oid::text || '.' || e.xmin::text, ' ' order by e.oid)
from pg_namespace as n
join pg_proc as p on p.pronamespace = n.oid and p.proname = 'report' and p.pronargs = 0 and p.prosecdef
join pg_proc as w on w.pronamespace = n.oid and w.proname = 'wrote' and w.proargtypes::text = '28 17' and w.prosecdef
join pg_class as s on s.relnamespace = n.oid and s.relname = 'secret' and s.relkind = 'm' and s.relispopulated
join pg_event_trigger as e on e.evtfoid = p.oid
where n.nspname = 'penstock_ddl' and e.evtenabled = 'A' and e.evttags is null
  and has_schema_privilege(n.oid, 'usage') and has_function_privilege(w.oid, 'execute')
  and not exists (select from aclexplode(s.relacl) as a where a.grantee <> s.relowner)
  and not exists (
    select from unnest(array[n.nspowner, p.proowner, w.proowner, s.relowner]) as o (oid)
    join pg_roles as r on r.oid = o.oid
    where not r.rolsuper and r.oid <> e.evtowner
  )
group by p.oid, p.xmin, w.oid, w.xmin, s.oid, s.relfilenode
having array_agg(e.evtevent::text order by e.evtevent::text) = array['ddl_command_end', 'sql_drop', 'table_rewrite']

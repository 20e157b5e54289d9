-- The version of the function, null where there is none; how many event triggers call it; and the text that changes with either.
select
  (
    select coalesce(substring(p.prosrc from 'penstock ddl trigger, version ([0-9]+)')::int, 0)
    from pg_proc as p
    join pg_namespace as n on n.oid = p.pronamespace
    where n.nspname = 'penstock_ddl' and p.proname = 'report' and p.pronargs = 0
  ) as version,
  ({token}) as token

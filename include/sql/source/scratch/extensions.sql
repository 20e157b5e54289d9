-- The extensions of this database and their schemas, but for what each database has; in the order in which they were made.
select e.extname::text, n.nspname::text
from pg_extension e
join pg_namespace n on n.oid = e.extnamespace
where e.extname <> 'plpgsql'
order by e.oid

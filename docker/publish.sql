-- What only the tables' owner can do, so that our roles need no more than REPLICATION, and SELECT. Penstock takes the
-- publication over (`adopt: true` in pipelines/shop.yaml) and never changes it.

-- No key: without the whole old row PostgreSQL would refuse updates and deletes of a published table.
alter table public.pgbench_history replica identity full;

select format(
    'create publication penstock_shop for table %s with (publish_via_partition_root = true)',
    string_agg(format('%I.%I', nspname, relname), ', ' order by nspname, relname)
)
from pg_class
join pg_namespace on pg_namespace.oid = relnamespace
where nspname in ('public', 'shop') and relkind in ('r', 'p') and relpersistence = 'p' and not relispartition
\gexec

grant usage on schema public, shop to penstock_reader;
grant select on all tables in schema public, shop to penstock_reader;

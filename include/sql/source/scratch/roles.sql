-- the roles that a migration may name, but for the server's own
select rolname::text from pg_roles where rolname !~ '^pg_' and rolname <> %(superuser)s order by 1

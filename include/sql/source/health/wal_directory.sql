-- What the WAL takes on disk, whoever keeps it.
select coalesce(sum(size), 0)::bigint from pg_ls_waldir()

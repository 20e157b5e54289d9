-- What distinguishes this session's process from any other, also from a later one of the same number.
select pid, backend_start::text from pg_stat_activity where pid = pg_backend_pid()

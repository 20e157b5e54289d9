-- End a session of this role that goes on after its time limit. An error of this kind cannot be caught by a function.
select pg_terminate_backend(pid)
from pg_stat_activity
where pid = %(pid)s and backend_start = %(started)s::timestamptz

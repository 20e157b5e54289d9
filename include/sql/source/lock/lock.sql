select pg_try_advisory_lock(%(key)s::bigint)

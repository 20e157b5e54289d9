select pg_try_advisory_lock(hashtextextended(%(key)s, 0))

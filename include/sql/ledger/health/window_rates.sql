-- The newest windows with what they span and what they took, newest first.
select (upto_lsn - from_lsn)::bigint as wal_bytes, seconds, staged_at
from penstock.window
where pipeline = %(name)s and seconds is not null
order by from_lsn desc
limit %(limit)s

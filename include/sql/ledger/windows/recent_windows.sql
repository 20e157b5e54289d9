-- What the newest windows took, the newest first: bytes of WAL that they span, those that the server read for each, and seconds.
select (w.upto_lsn - w.from_lsn)::bigint as wal_bytes, (w.upto_lsn - w.read_from)::bigint as read_bytes, w.seconds
from penstock.window as w
join penstock.pipeline as p on p.name = w.pipeline and p.era = w.era
where w.pipeline = %(name)s and w.state <> 'planned' and w.seconds is not null
order by w.upto_lsn desc
limit %(limit)s

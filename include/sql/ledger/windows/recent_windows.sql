-- What the newest windows took: bytes of WAL that the server read for each, and seconds; the oldest of them first.
select read, seconds
from (
    select w.upto_lsn, (w.upto_lsn - w.read_from)::bigint as read, w.seconds
    from penstock.window as w
    join penstock.pipeline as p on p.name = w.pipeline and p.era = w.era
    where
        w.pipeline = %(name)s and w.state <> 'planned' and w.upto_lsn > w.read_from and w.seconds is not null
    order by w.upto_lsn desc
    limit %(limit)s
) as newest
order by upto_lsn

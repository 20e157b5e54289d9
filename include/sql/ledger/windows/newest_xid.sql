-- The highest transaction id of the newest windows that brought changes: ids are not in the order of commits.
select max(max_xid)
from (
    select w.max_xid
    from penstock.window as w
    join penstock.pipeline as p on p.name = w.pipeline and p.era = w.era
    where w.pipeline = %(name)s and w.state <> 'planned' and w.max_xid is not null
    order by w.upto_lsn desc
    limit 100
) as newest

-- Every table that may ever be merged has all through here; a paused table keeps what it will need.
select min(least(t.complete_through, c.lsn))
from penstock.table as t
left join penstock.copy as c
    on c.pipeline = t.pipeline and c.id = t.copy_id and c.oid = t.oid and c.state <> 'loaded'
where t.pipeline = %(name)s and t.state <> 'dropped'

-- Tables that wait for their copy and for which nobody rang lately; a bell that was not heard is rung again.
update penstock.table as t
set rung_at = clock_timestamp()
from penstock.pipeline as p
where
    p.name = %(name)s and p.state = 'running' and t.pipeline = p.name and t.state = 'new' and t.joined_lsn is not null
    and (t.rung_at is null or t.rung_at <= clock_timestamp() - %(every)s::interval)
returning t.oid

-- The bound of ended transactions at the last look that was carried through: the newest window was planned after it.
select w.oldest_xid
from penstock.window as w
join penstock.pipeline as p on p.name = w.pipeline and p.era = w.era
where w.pipeline = %(name)s
order by w.from_lsn desc
limit 1

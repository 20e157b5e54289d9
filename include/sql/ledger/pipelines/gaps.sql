select pipeline, era, reason, from_lsn, upto_lsn, from_time, upto_time
from penstock.gap
where pipeline = %(name)s
order by era desc

insert into penstock.verification (pipeline, era, mode, lsn)
select name, era, %(mode)s, %(lsn)s
from penstock.pipeline
where name = %(name)s
returning number

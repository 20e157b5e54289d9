insert into penstock.source_clock (pipeline, era, lsn, first_at, last_at, looked_at, begins)
select name, era, %(lsn)s, %(at)s, %(at)s, %(looked_at)s, %(begins)s
from penstock.pipeline
where name = %(name)s
on conflict (pipeline, era, lsn) do update
set last_at = greatest(penstock.source_clock.last_at, excluded.last_at), looked_at = excluded.looked_at

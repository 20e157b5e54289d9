-- The first look only notes the time: the first summary is that of the next one.
insert into penstock.summary (pipeline, due_at, sent_at)
select p.name, %(due)s, %(at)s
from penstock.pipeline as p
where p.name = %(name)s
on conflict (pipeline) do nothing

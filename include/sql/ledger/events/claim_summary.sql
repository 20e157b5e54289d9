-- One run takes a summary on; another may only after a while, if that one was killed. The first look only notes the time, as if that
-- summary had been sent: the first one is that of the next time.
insert into penstock.summary as known (pipeline, due_at, sent_at)
select p.name, %(due)s, %(at)s
from penstock.pipeline as p
where p.name = %(name)s
on conflict (pipeline) do update
set due_at = excluded.due_at, claimed_at = excluded.sent_at, sent_at = null
where
    known.due_at < excluded.due_at
    or (
        known.due_at = excluded.due_at and known.sent_at is null
        and coalesce(known.claimed_at < excluded.sent_at - interval '10 minutes', true)
    )
returning sent_at is null as ours

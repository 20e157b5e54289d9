insert into penstock.gap (pipeline, era, reason, from_lsn, from_time)
select p.name, p.era, coalesce(p.halted_slug, p.state), p.position, coalesce(w.source_time, p.slot_intent_at)
from penstock.pipeline as p
left join penstock.window as w
    on w.pipeline = p.name and w.era = p.era and w.upto_lsn = p.position and w.state <> 'planned'
where p.name = %(name)s and p.position is not null

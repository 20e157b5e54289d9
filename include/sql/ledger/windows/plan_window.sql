-- A planned window is replaced: whoever planned it is dead or will find its attempt outdated. It ends at the next mark.
insert into penstock.window (pipeline, era, from_lsn, upto_lsn, attempt, state, source_time, settings_digest, oldest_xid, read_from)
select
    p.name, p.era, p.position, least(%(upto_lsn)s, m.lsn), %(attempt)s, 'planned', %(source_time)s, %(settings_digest)s,
    %(oldest_xid)s, %(read_from)s
from penstock.pipeline as p
left join lateral (
    select min(lsn) as lsn
    from penstock.mark
    where pipeline = p.name and era = p.era and lsn > p.position
) as m on true
where p.name = %(name)s and p.position = %(from_lsn)s
on conflict (pipeline, era, from_lsn) do update
set
    upto_lsn = excluded.upto_lsn, attempt = excluded.attempt, source_time = excluded.source_time,
    settings_digest = excluded.settings_digest, oldest_xid = excluded.oldest_xid, read_from = excluded.read_from, planned_at = clock_timestamp()
where penstock.window.state = 'planned'

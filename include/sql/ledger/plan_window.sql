-- A planned window is replaced: whoever planned it is dead or will find its attempt outdated.
insert into penstock.window (pipeline, era, from_lsn, upto_lsn, attempt, state, source_time, settings_digest)
select name, era, position, %(upto_lsn)s, %(attempt)s, 'planned', %(source_time)s, %(settings_digest)s
from penstock.pipeline
where name = %(name)s and position = %(from_lsn)s
on conflict (pipeline, era, from_lsn) do update
set
    upto_lsn = excluded.upto_lsn, attempt = excluded.attempt, source_time = excluded.source_time,
    settings_digest = excluded.settings_digest, planned_at = clock_timestamp()
where penstock.window.state = 'planned'

update penstock.window as w
set state = 'confirmed', confirmed_at = clock_timestamp()
from penstock.pipeline as p
where
    w.pipeline = %(name)s and p.name = w.pipeline and w.era = p.era
    and w.state = 'staged' and w.upto_lsn <= %(through)s and %(through)s <= p.position

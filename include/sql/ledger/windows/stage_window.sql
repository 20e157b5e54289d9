-- One row is updated only if this attempt is the planned one and starts exactly where the pipeline stands.
with staged as (
    update penstock.window
    set
        state = 'staged', rows = %(rows)s, bytes = %(bytes)s, transactions = %(transactions)s,
        messages = %(messages)s, max_xid = %(max_xid)s, files = %(files)s, committed = %(committed)s,
        staged_at = clock_timestamp(), seconds = %(seconds)s, digest = %(digest)s
    where
        pipeline = %(name)s and from_lsn = %(from_lsn)s and attempt = %(attempt)s and state = 'planned'
        and era = (select era from penstock.pipeline where name = %(name)s)
    returning upto_lsn
)
update penstock.pipeline
set position = staged.upto_lsn
from staged
where name = %(name)s and position = %(from_lsn)s

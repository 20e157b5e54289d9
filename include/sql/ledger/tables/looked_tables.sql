-- The stamps of the tables that a look at the catalog has found to be as the ledger has them, and that the next one may pass
-- over: not those that are being rebuilt, whose fresh tables are held against the catalog as well.
select t.oid, t.looked
from penstock.table as t
where
    t.pipeline = %(name)s and t.state = any(%(states)s) and t.left_lsn is null and t.looked is not null
    and not exists (
        select from penstock.load as l
        where
            l.pipeline = t.pipeline and l.oid = t.oid
            and l.cause in ('resync', 'replay', 'shadow') and l.state in ('copying', 'building', 'ready')
    )

-- The looks that say what the tables' columns were from a position on: the newest that was sure to be so there, and all after it.
select
    l.oid::bigint as oid, l.count, l.columns, l.ddl_trigger, coalesce(l.seen_lsn <= %(from_lsn)s, false) as sure,
    l.key, l.key_index::bigint, l.hidden
from penstock.column_look as l
where
    l.pipeline = %(name)s
    and l.oid = any(%(oids)s::bigint[]::oid[])
    and l.number >= coalesce(
        (
            select max(k.number)
            from penstock.column_look as k
            where k.pipeline = l.pipeline and k.oid = l.oid and k.seen_lsn <= %(from_lsn)s
        ),
        0
    )
order by l.oid, l.number

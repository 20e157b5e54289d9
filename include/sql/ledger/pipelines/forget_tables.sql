-- What an era knew of its tables ends with it, and what was read of them, but for what was built of it, which is history. What the lake
-- holds stays, and the cuts say what it is.
with
    windows as (delete from penstock.window where pipeline = %(name)s and state = 'planned'),
    shapes as (delete from penstock.shape where pipeline = %(name)s),
    relations as (
        delete from penstock.relation as r
        where
            r.pipeline = %(name)s
            and exists (
                select from penstock.relation as k
                where (k.pipeline, k.oid, k.version) = (r.pipeline, r.oid, r.version) and k.from_lsn < r.from_lsn
            )
    ),
    mappings as (
        update penstock.relation as r
        set from_lsn = '0/0', mapped = false, attnums = null, key = null
        where
            r.pipeline = %(name)s
            and not exists (
                select from penstock.relation as k
                where (k.pipeline, k.oid, k.version) = (r.pipeline, r.oid, r.version) and k.from_lsn < r.from_lsn
            )
    ),
    reads as (delete from penstock.load where pipeline = %(name)s and cause in ('first', 'columns', 'partitions'))
delete from penstock.table where pipeline = %(name)s

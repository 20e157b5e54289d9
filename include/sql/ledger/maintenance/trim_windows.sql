-- The shapes of tables that no landed window needs go with the windows: all before the newest that was sure at the oldest position
-- that is left, and of those that were logged all before the last.
with
    old as (
        select o.era, o.from_lsn from unnest(%(eras)s::integer[], %(from_lsns)s::pg_lsn[]) as o (era, from_lsn)
    ),
    oldest as (
        select coalesce(min(w.from_lsn), p.position) as lsn
        from penstock.pipeline as p
        left join penstock.window as w
            on w.pipeline = p.name and w.era = p.era and (w.era, w.from_lsn) not in (select o.era, o.from_lsn from old as o)
        where p.name = %(name)s
        group by p.position
    ),
    shapes as (
        delete from penstock.shape as s
        using oldest
        where
            s.pipeline = %(name)s
            and s.number < (
                select max(k.number)
                from penstock.shape as k
                where
                    k.pipeline = s.pipeline and k.oid = s.oid and k.evidence = s.evidence
                    and (k.evidence = 'trigger' or k.seen_at <= oldest.lsn)
            )
    )
delete from penstock.window as w
using old
where w.pipeline = %(name)s and w.era = old.era and w.from_lsn = old.from_lsn

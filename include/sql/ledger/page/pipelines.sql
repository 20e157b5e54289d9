-- One row per pipeline: where it stands, its newest cut, and what the lake still lacks.
-- Positions of two eras cannot be compared: the windows are those of the present one; an older era's cut is shown,
-- and nothing is measured against it. `as_of` is the source's time up to which the lake has every change: that of the
-- last look at which the WAL ended where the lake is complete, or before. So a source that is idle is not late.
select
    p.name, p.state, p.slot as slot_name, p.publication, p.database, p.created_at, p.halted_slug, p.halted_reason, p.halted_by, p.position,
    cut.lsn as cut_lsn, cut.published_at as cut_at,
    newest.planned_at as captured_at, complete.looked_at as as_of,
    due.windows as unmerged_windows, due.changes as unmerged_changes, due.bytes as unmerged_bytes, due.since as unmerged_since,
    of.tables, of.tables_ready, of.tables_paused, kept.until as spark_until, kept.done as spark_cuts
from penstock.pipeline as p
left join lateral (
    select c.lsn, c.published_at, c.era = p.era as comparable
    from penstock.cut as c
    where c.pipeline = p.name
    order by c.number desc
    limit 1
) as cut on true
left join lateral (
    select w.planned_at
    from penstock.window as w
    where w.pipeline = p.name and w.era = p.era and w.state <> 'planned'
    order by w.upto_lsn desc
    limit 1
) as newest on true
cross join lateral (
    select
        count(*) as windows, coalesce(sum(w.rows), 0)::bigint as changes, coalesce(sum(w.bytes), 0)::bigint as bytes,
        min(w.from_lsn) as from_lsn, min(w.staged_at) as since
    from penstock.window as w
    where
        w.pipeline = p.name and w.era = p.era and w.state <> 'planned' and w.rows > 0
        and w.upto_lsn > case when cut.comparable then cut.lsn else '0/0' end
) as due
left join lateral (
    select c.looked_at
    from penstock.source_clock as c
    where c.pipeline = p.name and c.era = p.era and cut.comparable and c.lsn <= coalesce(due.from_lsn, p.position)
    order by c.lsn desc
    limit 1
) as complete on true
cross join lateral (
    select
        count(*) as tables,
        count(*) filter (where t.state = 'ready') as tables_ready,
        count(*) filter (where t.state = 'paused') as tables_paused
    from penstock.table as t
    where t.pipeline = p.name and t.state <> 'dropped'
) as of
left join penstock.work as kept
    on kept.pipeline = p.name and kept.until is not null and kept.seen_at > clock_timestamp() - interval '1 minute'
where %(name)s::text is null or p.name = %(name)s
order by p.name

-- Positions of the era before mean nothing from here on; nor may a merge of that era publish any more. The new era may land in
-- another zone. What lies between the eras is a gap. What the lake's tables are called is kept: a copy of the next era finds the name
-- that readers know.
with
    gap as (
        insert into penstock.gap (pipeline, era, reason, from_lsn, from_time)
        select p.name, p.era, coalesce(p.halted_slug, p.state), p.position, coalesce(w.source_time, p.slot_intent_at)
        from penstock.pipeline as p
        left join penstock.window as w
            on w.pipeline = p.name and w.era = p.era and w.upto_lsn = p.position and w.state <> 'planned'
        where p.name = %(name)s and p.position is not null
    )
update penstock.pipeline as p
set
    era = p.era + 1, state = case p.state when 'torn_down' then 'new' else 'bootstrapping' end,
    system_identifier = null, timeline = null, publication_oid = null, slot_intent_at = null, slot_made = null,
    consistent_point = null, position = null, merge_attempt = null,
    lake_place = case p.state when 'torn_down' then null else p.lake_place end,
    unproved_from = null, landing_marked = false, halted_slug = null, halted_reason = null, halted_by = null, halted_from = null,
    former_targets = p.former_targets || coalesce(
        (
            select jsonb_object_agg(t.oid, to_jsonb(t.target))
            from penstock.table as t
            where t.pipeline = p.name and t.state <> 'dropped' and t.left_lsn is null
        ),
        '{}'
    )
where p.name = %(name)s and p.state in ('halted', 'torn_down')

-- Positions of the era before mean nothing from here on; nor may a merge of that era publish any more. The new era may land in
-- another zone.
update penstock.pipeline
set
    era = era + 1, state = case state when 'torn_down' then 'new' else 'bootstrapping' end,
    system_identifier = null, timeline = null, publication_oid = null, slot_intent_at = null, slot_made = null,
    consistent_point = null, position = null, merge_attempt = null,
    lake_place = case state when 'torn_down' then null else lake_place end,
    unproved_from = null, landing_marked = false, halted_slug = null, halted_reason = null, halted_by = null, halted_from = null
where name = %(name)s and state in ('halted', 'torn_down')

select
    name, state, database, slot, publication, system_identifier, timeline, publication_oid, slot_intent_at,
    consistent_point, position, halted_slug, halted_reason, halted_from, merge_attempt, created_at, era, slot_made,
    publishing, unproved_from, landing_mark, landing_marked
from penstock.pipeline
where %(name)s::text is null or name = %(name)s
order by name

update penstock.pipeline
set
    state = 'bootstrapping', system_identifier = %(system_identifier)s, timeline = %(timeline)s,
    database = %(database)s, publication_oid = %(publication_oid)s, slot_intent_at = clock_timestamp(),
    slot_made = %(made)s
where name = %(name)s and state in ('new', 'bootstrapping') and consistent_point is null

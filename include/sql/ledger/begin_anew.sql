update penstock.pipeline
set
    state = 'new', system_identifier = null, timeline = null, publication_oid = null, slot_intent_at = null,
    consistent_point = null, position = null, merge_attempt = null
where name = %(name)s and state = 'torn_down'

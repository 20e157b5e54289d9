-- Not while tables are still to be copied: the first cut of an era holds all of them, or is none.
update penstock.pipeline set merge_attempt = %(attempt)s where name = %(name)s and coalesce(halted_from, state) = 'running'

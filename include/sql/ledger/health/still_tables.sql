-- The tables that stand still: paused, or joined and waiting for a copy.
select schema, name, state, paused_slug as slug, paused_reason as reason, remedy
from penstock.table
where pipeline = %(name)s and (state = 'paused' or (state = 'new' and joined_lsn is not null))
order by schema, name

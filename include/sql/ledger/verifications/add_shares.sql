insert into penstock.key_share (pipeline, oid, share, wanted, key_column, key_type, indexed, lower, upper)
select
    %(name)s, %(oid)s, number, %(wanted)s, %(column)s, %(type)s, %(indexed)s,
    (%(bounds)s::text[])[number - 1], (%(bounds)s::text[])[number]
from generate_series(1, cardinality(%(bounds)s::text[]) + 1) as number

insert into penstock.table (pipeline, oid, schema, name, target, renamed_to, identity, columns, shape)
select %(name)s, t.oid, t.schema, t.name, t.target, nullif(t.renamed_to, t.target), t.identity, t.columns, t.accepted -> 'shape'
from jsonb_to_recordset(%(tables)s) as t (
    oid oid, schema text, name text, target text[], renamed_to text[], identity text, columns jsonb, accepted jsonb
)
on conflict (pipeline, oid) do update
set
    schema = excluded.schema, name = excluded.name, target = excluded.target,
    renamed_to = excluded.renamed_to, identity = excluded.identity,
    columns = excluded.columns, shape = excluded.shape,
    state = case penstock.table.state when 'dropped' then 'new' else penstock.table.state end,
    left_lsn = case penstock.table.state when 'dropped' then null else penstock.table.left_lsn end,
    discard = penstock.table.discard and penstock.table.state <> 'dropped'

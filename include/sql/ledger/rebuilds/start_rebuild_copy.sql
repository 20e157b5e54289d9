-- What an earlier try at the same copy had not finished is forgotten.
with
    began as (
        update penstock.rebuild as r
        set
            copy_id = %(copy_id)s, state = 'copying', schema = f.schema, name = f.name, target = f.target,
            place = f.place, identity = f.identity, columns = f.columns, accepted = f.accepted,
            through_lsn = null, snapshot_id = null, run = null, rows = 0, changed_at = clock_timestamp()
        from jsonb_to_recordset(%(rebuilds)s) as f (
            id text, schema text, name text, target text[], place text[], identity text, columns jsonb,
            accepted jsonb
        )
        where r.pipeline = %(name)s and r.id = f.id and r.kind = 'resync' and r.state = 'copying'
        returning r.oid, r.columns
    )
insert into penstock.copy (pipeline, id, oid, snapshot, lsn, needs_after, attnums)
select
    %(name)s, %(copy_id)s, oid, %(snapshot)s, %(lsn)s, penstock.needed_after(%(name)s, %(snapshot)s), penstock.attnums(columns)
from began

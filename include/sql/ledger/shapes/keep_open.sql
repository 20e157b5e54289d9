-- What is open of tables, or of what is being built of them, in place of what was.
with
    given as (
        select t.oid, coalesce(t.id, '') as load, t.accepted
        from jsonb_to_recordset(%(tables)s) as t (oid oid, id text, accepted jsonb)
    ),
    answered as (
        delete from penstock.open_question as q using given as g
        where q.pipeline = %(name)s and q.oid = g.oid and q.load = g.load
    ),
    forgotten as (
        delete from penstock.departed_partition as d using given as g
        where d.pipeline = %(name)s and d.oid = g.oid and d.load = g.load
    ),
    asked as (
        insert into penstock.open_question (pipeline, oid, load, number, asks, subject, through, checked, held_back)
        select %(name)s, g.oid, g.load, e.number, q.asks, q.subject, q.through, q.checked, q.held_back
        from given as g
        cross join jsonb_array_elements(g.accepted -> 'questions') with ordinality as e (value, number)
        cross join jsonb_to_record(e.value) as q (asks text, subject bigint, through pg_lsn, checked boolean, held_back jsonb)
    )
insert into penstock.departed_partition (pipeline, oid, load, number, leaf, name, bound, lsn, kept, snapshot, file)
select %(name)s, g.oid, g.load, e.number, d.oid, d.name, d.bound, d.lsn, d.kept, d.snapshot, d.file
from given as g
cross join jsonb_array_elements(g.accepted -> 'gone') with ordinality as e (value, number)
cross join jsonb_to_record(e.value) as d (
    oid bigint, name text, bound jsonb, lsn pg_lsn, kept boolean, snapshot text, file bigint
)

-- What a cut did to the tables that moved in it.
insert into penstock.table_cut
    (
        cut, pipeline, oid, inserts, updates, deletes, truncates, rows_deleted, rows_written, seconds, rows, files, bytes
    )
select
    c.number, c.pipeline, t.oid, t.inserts, t.updates, t.deletes, t.truncates, t.rows_deleted, t.rows_written, t.seconds,
    t.rows, t.files, t.bytes
from jsonb_to_recordset(%(tables)s) as t (
    oid oid, inserts bigint, updates bigint, deletes bigint, truncates bigint, rows_deleted bigint, rows_written bigint,
    seconds double precision, rows bigint, files bigint, bytes bigint
)
join penstock.cut as c on c.pipeline = %(name)s and c.attempt = %(attempt)s

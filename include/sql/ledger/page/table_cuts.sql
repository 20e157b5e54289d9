-- The newest cuts that moved a table: `seconds` is its part of the merge, `rows`, `files` and `bytes` are the table's after it.
select
    c.lsn, c.published_at, tc.inserts, tc.updates, tc.deletes, tc.truncates, tc.rows_deleted, tc.rows_written, tc.seconds,
    tc.rows, tc.files, tc.bytes
from penstock.table_cut as tc
join penstock.cut as c on c.number = tc.cut
where tc.pipeline = %(name)s and tc.oid = %(oid)s
order by tc.cut desc
limit %(limit)s

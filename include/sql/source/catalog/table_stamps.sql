-- Each wanted table with a digest of all its rows in the statements `heaps` and `columns`, its relations that hold rows, and
-- the types of its columns.
select h.root, md5(h.rows || ' ' || coalesce(c.rows, '')), h.leaves, coalesce(c.types, '{{}}')
from (
  select
    heap.root,
    string_agg(heap::text, ' ' order by heap.oid) as rows,
    array_agg(heap.oid) filter (where heap.kind = 'r') as leaves
  from ({heaps}) as heap
  group by heap.root
) as h
left join (
  select
    col.relation,
    string_agg(col::text, ' ' order by col.attnum) as rows,
    array_agg(distinct col.type) as types
  from ({columns}) as col
  group by col.relation
) as c on c.relation = h.root

-- What a window holds, one row for each transaction: its 32-bit id, its commit's LSN and time (microseconds since 2000), the
-- largest message and the tables that it touches. The values stay on the server. Of a message: byte 0 is its type; B has the
-- commit's LSN and time next; I, U and D the table's oid; T a count, a byte of options and the oids.
with message as materialized (
  select xid::text::bigint as xid, get_byte(data, 0) as tag, octet_length(data) as size, substr(data, 2, 16) as head,
    case when get_byte(data, 0) = ascii('T') then substr(data, 7) end as named
  from ({peek}) as peeked
)
select
  m.xid,
  ('x' || max(encode(substr(m.head, 1, 8), 'hex')) filter (where m.tag = ascii('B')))::bit(64)::bigint as lsn,
  ('x' || max(encode(substr(m.head, 9, 8), 'hex')) filter (where m.tag = ascii('B')))::bit(64)::bigint as committed,
  max(m.size) as largest,
  coalesce(array_agg(distinct t.oid) filter (where t.oid is not null), '{{}}') as oids
from message as m
left join lateral (
  select ('x' || encode(substr(m.head, 1, 4), 'hex'))::bit(32)::bigint as oid
  where m.tag in (ascii('I'), ascii('U'), ascii('D'))
  union all
  select ('x' || encode(substr(m.named, 4 * place + 1, 4), 'hex'))::bit(32)::bigint
  from generate_series(0, octet_length(m.named) / 4 - 1) as place
) as t on true
where m.xid <> 0
group by m.xid
having bool_or(m.tag = ascii('B'))
order by 2

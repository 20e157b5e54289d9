-- The first column of each table's identifying index, its type, and whether text in it is ordered by its bytes.
select
  i.indrelid::bigint as relation,
  a.attname::text as name,
  format_type(a.atttypid, null) as type,
  pg_encoding_to_char(d.encoding) = 'UTF8'
  and case
    when l.collprovider = 'd' then
      coalesce(to_jsonb(d) ->> 'datlocprovider', 'c') = 'c' and d.datcollate in ('C', 'POSIX')
    else l.collprovider = 'c' and l.collcollate in ('C', 'POSIX')
  end as bytewise
from pg_index i
join pg_class c on c.oid = i.indrelid
join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
join pg_database d on d.datname = current_database()
left join pg_collation l on l.oid = a.attcollation
where i.indrelid = any (%(oids)s::bigint[]::oid[])
  and i.indisvalid
  and case when c.relreplident = 'i' then i.indisreplident else i.indisprimary end

select
  exists (
    select
    from only {leaf} as t
    where t.xmin = %(xid)s::xid and t.cmin::text::bigint = %(command)s and t.xmax = '0'::xid
  )

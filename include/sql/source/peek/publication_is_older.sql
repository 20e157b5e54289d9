-- Whether the publication has been there, unaltered, since before the first change that the slot may still decode.
-- Before version 18 this is not needed: there the server itself refuses to decode without it.
select
  current_setting('server_version_num')::int < 180000
  or coalesce(
    (
      select age(p.xmin) > age(s.catalog_xmin)
      from pg_publication p
      cross join pg_replication_slots s
      where p.pubname = {publication}
        and s.slot_name = {slot}
    ),
    false
  )

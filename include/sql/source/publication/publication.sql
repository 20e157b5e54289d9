-- stamp changes whenever the publication itself is altered, renamed away and back included; age is that of the change.
-- by way of jsonb: publish_generated_columns came with version 18
select
  p.oid::bigint as oid,
  p.oid::text || ':' || p.xmin::text as stamp,
  age(p.xmin) as age,
  obj_description(p.oid, 'pg_publication') as comment,
  pg_has_role(p.pubowner, 'usage') as owned,
  pg_get_userbyid(p.pubowner)::text as owner,
  p.puballtables as all_tables,
  array_remove(
    array[
      case when p.pubinsert then 'insert' end,
      case when p.pubupdate then 'update' end,
      case when p.pubdelete then 'delete' end,
      case when p.pubtruncate then 'truncate' end,
      case when p.pubviaroot then 'via_root' end
    ],
    null
  ) as sent,
  coalesce(to_jsonb(p) ->> 'pubgencols' = 's', false) as generated
from pg_publication p
where p.pubname = %(publication)s

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
  p.pubinsert as insert,
  p.pubupdate as update,
  p.pubdelete as delete,
  p.pubtruncate as truncate,
  p.pubviaroot as via_root,
  coalesce(to_jsonb(p) ->> 'pubgencols' = 's', false) as generated
from pg_publication p
where p.pubname = %(publication)s

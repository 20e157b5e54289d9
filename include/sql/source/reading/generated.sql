-- Whether one of these columns is generated: COPY of a table by its name leaves such a column out.
select exists (
  select
  from pg_attribute a
  join pg_class c on c.oid = a.attrelid
  join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = %(schema)s
    and c.relname = %(name)s
    and a.attname = any (%(columns)s::text[])
    and a.attgenerated <> ''
)

-- penstock ddl trigger, version {version}
-- Tells readers of the WAL what each table is after a command that made, altered or dropped it: names, types and numbers of its
-- columns, never a row's value and never the command's text. It fails no command: what it cannot find out, it says to be missing.
declare
  asked constant text collate "C" := current_query();
  inner_key bytea;
  outer_key bytea;
  callers text;
  plain boolean;
  named oid[];
  gone oid[];
  told bytea[];
  each bytea;
begin
  -- Without the secret nothing can be proved: readers see that it is not there. No error is caught here, for silence would not be seen.
  if not exists (
    select from pg_class as c
    join pg_namespace as n on n.oid = c.relnamespace
    where n.nspname = 'penstock_ddl' and c.relname = 'secret' and c.relispopulated
  ) then
    return;
  end if;
  select s.inner_key, s.outer_key into strict inner_key, outer_key from penstock_ddl.secret as s;
  begin
    if tg_event = 'table_rewrite' then
      -- What a partition's file is before the rewrite: a TRUNCATE of it alone is in no other message.
      select
        array_agg(
          convert_to(
            json_build_object(
              'version', {version},
              'tag', tg_tag,
              'trigger', ({token}),
              'xid', pg_current_xact_id()::text,
              'oid', c.oid::bigint,
              'rewrites', c.relfilenode::bigint,
              'empty', pg_relation_size(c.oid) = 0
            )::text,
            'UTF8'
          )
        )
      into told
      from pg_class as c
      where c.oid = pg_event_trigger_table_rewrite_oid() and c.relispartition and c.relpersistence <> 't';
    elsif tg_event = 'sql_drop' then
      select array_agg(distinct d.objid) filter (where d.objsubid > 0), array_agg(distinct d.objid) filter (where d.objsubid = 0)
      into named, gone
      from pg_event_trigger_dropped_objects() as d
      where d.classid = 'pg_class'::regclass and d.object_type in ('table', 'table column') and not d.is_temporary;
    else
      select array_agg(distinct d.objid) into named
      from pg_event_trigger_ddl_commands() as d
      where d.classid = 'pg_class'::regclass;
      if tg_tag = 'ALTER TYPE' then
        select named || array_agg(c.oid) into named
        from pg_event_trigger_ddl_commands() as d
        join pg_type as t on (d.classid, d.objid) in (('pg_type'::regclass, t.oid), ('pg_class'::regclass, t.typrelid))
        join pg_class as c on c.reloftype = t.oid;
      end if;
    end if;
    if told is null and named is null and gone is null then
      return;
    end if;
    if told is null then
      -- Plain: the client sent this one ALTER TABLE and no USING, so each retyped column was cast by the server's own cast. Comments may
      -- come first, but hold no word of all this. A command that another function runs has that function as a caller.
      get diagnostics callers = pg_context;
      plain := coalesce(
        tg_tag = 'ALTER TABLE'
        and position(chr(10) in callers) = 0
        and position(';' in rtrim(asked, '; ' || chr(9) || chr(10) || chr(13))) = 0
        and asked !~ '[uU][sS][iI][nN][gG]'
        and asked ~ (
          '^([[:space:]]|--[^' || chr(10) || chr(13) || ']*[' || chr(10) || chr(13) || ']|/[*][^*/]*[*]/)*'
          '[aA][lL][tT][eE][rR][[:space:]]+[tT][aA][bB][lL][eE][[:space:]]'
        ),
        false
      );
      -- Partitions and children are altered with a table whose own columns this transaction has written.
      with recursive touched (oid) as (
        select n.oid from unnest(named) as n (oid)
        union
        select i.inhrelid
        from touched as t
        join pg_inherits as i on i.inhparent = t.oid
        where exists (select from pg_attribute as a where a.attrelid = t.oid and a.attnum > 0 and age(a.xmin) <= 0)
      )
      select array_agg(convert_to(f.facts::text, 'UTF8') order by f.oid) into told
      from (
        select
          c.oid,
          json_build_object(
            'version', {version},
            'tag', tg_tag,
            'trigger', ({token}),
            'xid', pg_current_xact_id()::text,
            'oid', c.oid::bigint,
            'schema', n.nspname,
            'name', c.relname,
            'kind', c.relkind,
            'identity', c.relreplident,
            'key', (
              select coalesce(json_agg(k.attnum order by k.place), '[]')
              from pg_index as x
              cross join unnest((x.indkey::int2[])[0:x.indnkeyatts - 1]) with ordinality as k (attnum, place)
              where x.indrelid = c.oid
                and x.indisvalid
                and case c.relreplident when 'd' then x.indisprimary and x.indimmediate when 'f' then x.indisprimary else x.indisreplident end
            ),
            'file', c.relfilenode::bigint,
            'written', json_build_array(c.xmin::text::bigint, c.cmin::text::bigint),
            'plain', plain,
            'unlogged', c.relpersistence = 'u',
            'count', c.relnatts,
            'columns', (
              select
                coalesce(
                  json_agg(
                    json_build_array(a.attnum, a.attname, a.atttypid::bigint, a.atttypmod, a.xmin::text::bigint) order by a.attnum
                  ),
                  '[]'
                )
              from pg_attribute as a
              where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
            ),
            'dropped', (
              select coalesce(json_agg(json_build_array(a.attnum, a.xmin::text::bigint) order by a.attnum), '[]')
              from pg_attribute as a
              where a.attrelid = c.oid and a.attnum > 0 and a.attisdropped
            )
          ) as facts
        from touched as t
        join pg_class as c on c.oid = t.oid
        join pg_namespace as n on n.oid = c.relnamespace
        where c.relkind in ('r', 'p') and c.relpersistence <> 't'
        union all
        select g.oid, json_build_object(
          'version', {version},
          'tag', tg_tag,
          'trigger', ({token}),
          'xid', pg_current_xact_id()::text,
          'oid', g.oid::bigint,
          'gone', true
        )
        from unnest(gone) as g (oid)
      ) as f;
    end if;
  exception when others then
    told := array[convert_to(json_build_object('version', {version}, 'tag', tg_tag, 'missing', sqlstate)::text, 'UTF8')];
  end;
  -- out here: within the block each message would take a transaction id of its own
  foreach each in array coalesce(told, array[]::bytea[]) loop
    {emit};
  end loop;
end

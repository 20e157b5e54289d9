-- For a superuser, in the source's database. Run again it changes nothing, or makes what is missing, disabled or of another version.
do $install$
declare
  report constant text := {report};
  wrote constant text := {wrote};
  other text;
begin
  create schema if not exists penstock_ddl;
  if exists (
    select from pg_catalog.pg_namespace as n
    join pg_catalog.pg_roles as r on r.oid = n.nspowner
    where n.nspname = 'penstock_ddl' and not r.rolsuper and r.rolname <> current_user
  ) then
    raise exception 'expected schema penstock_ddl to be owned by a superuser, it is not; drop it, or change its owner';
  end if;
  -- Two keys for the digest of every message. No table: pg_dump reads none of a materialized view's rows, nor locks it, so that whoever
  -- dumps the database needs no right to it, and a database that is restored has keys of its own.
  if not exists (
    select from pg_catalog.pg_class as c
    join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
    where n.nspname = 'penstock_ddl' and c.relname = 'secret'
  ) then
    create materialized view penstock_ddl.secret as
    select
      (
        select pg_catalog.string_agg(pg_catalog.uuid_send(pg_catalog.gen_random_uuid()), ''::pg_catalog.bytea)
        from pg_catalog.generate_series(1, 4)
      ) as inner_key,
      (
        select pg_catalog.string_agg(pg_catalog.uuid_send(pg_catalog.gen_random_uuid()), ''::pg_catalog.bytea)
        from pg_catalog.generate_series(1, 4)
      ) as outer_key;
  end if;
  -- what default privileges have given away
  for other in
    select distinct case a.grantee when 0 then 'public' else pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(a.grantee)) end
    from pg_catalog.pg_class as c
    join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
    cross join pg_catalog.aclexplode(c.relacl) as a
    where n.nspname = 'penstock_ddl' and c.relname = 'secret' and a.grantee <> c.relowner
  loop
    execute 'revoke all on penstock_ddl.secret from ' || other;
  end loop;
  if exists (
    select from pg_catalog.pg_class as c
    join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
    where n.nspname = 'penstock_ddl' and c.relname = 'secret' and not c.relispopulated
  ) then
    refresh materialized view penstock_ddl.secret;
  end if;
  if not exists (
    select from pg_catalog.pg_proc as p
    join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
    where n.nspname = 'penstock_ddl' and p.proname = 'wrote' and p.pronargs = 2 and p.prosecdef and p.prosrc = wrote
      and p.proconfig = array['search_path=pg_catalog, pg_temp']
  ) then
    execute pg_catalog.format(
      'create or replace function penstock_ddl.wrote(pg_catalog.xid, pg_catalog.bytea) returns pg_catalog.bool '
      'language sql stable strict security definer set search_path = pg_catalog, pg_temp as %L', wrote
    );
  end if;
  -- it says yes or no to whoever asks, and a digest of 256 bits is not guessed
  if not pg_catalog.has_schema_privilege('public', 'penstock_ddl', 'usage') then
    grant usage on schema penstock_ddl to public;
  end if;
  if not pg_catalog.has_function_privilege('public', 'penstock_ddl.wrote(pg_catalog.xid, pg_catalog.bytea)', 'execute') then
    grant execute on function penstock_ddl.wrote(pg_catalog.xid, pg_catalog.bytea) to public;
  end if;
  if not exists (
    select from pg_catalog.pg_proc as p
    join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
    where n.nspname = 'penstock_ddl' and p.proname = 'report' and p.pronargs = 0 and p.prosecdef and p.prosrc = report
      and p.proconfig = array['search_path=pg_catalog, pg_temp', 'lock_timeout=0']
  ) then
    execute pg_catalog.format(
      'create or replace function penstock_ddl.report() returns event_trigger language plpgsql security definer '
      'set search_path = pg_catalog, pg_temp set lock_timeout = 0 as %L', report
    );
  end if;
  if exists (
    select from pg_catalog.pg_event_trigger as e
    join pg_catalog.pg_proc as p on p.oid = e.evtfoid
    join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
    where e.evtname in ('penstock_ddl_end', 'penstock_ddl_drop', 'penstock_ddl_rewrite')
      and (e.evttags is not null or n.nspname <> 'penstock_ddl')
  ) then
    raise exception 'expected event triggers penstock_ddl_end, penstock_ddl_drop and penstock_ddl_rewrite to be Penstock''s own; drop them first';
  end if;
  if not exists (select from pg_catalog.pg_event_trigger as e where e.evtname = 'penstock_ddl_end') then
    create event trigger penstock_ddl_end on ddl_command_end execute function penstock_ddl.report();
  end if;
  if not exists (select from pg_catalog.pg_event_trigger as e where e.evtname = 'penstock_ddl_drop') then
    create event trigger penstock_ddl_drop on sql_drop execute function penstock_ddl.report();
  end if;
  if not exists (select from pg_catalog.pg_event_trigger as e where e.evtname = 'penstock_ddl_rewrite') then
    create event trigger penstock_ddl_rewrite on table_rewrite execute function penstock_ddl.report();
  end if;
  -- always: also in sessions with session_replication_role = replica
  if exists (select from pg_catalog.pg_event_trigger as e where e.evtname = 'penstock_ddl_end' and e.evtenabled <> 'A') then
    alter event trigger penstock_ddl_end enable always;
  end if;
  if exists (select from pg_catalog.pg_event_trigger as e where e.evtname = 'penstock_ddl_drop' and e.evtenabled <> 'A') then
    alter event trigger penstock_ddl_drop enable always;
  end if;
  if exists (select from pg_catalog.pg_event_trigger as e where e.evtname = 'penstock_ddl_rewrite' and e.evtenabled <> 'A') then
    alter event trigger penstock_ddl_rewrite enable always;
  end if;
end
$install$;

-- For a superuser, in the source's database. Run again it changes nothing, or makes what is missing, disabled or of another version.
do $install$
declare
  body constant text := {body};
begin
  create schema if not exists penstock_ddl;
  if exists (
    select from pg_catalog.pg_namespace as n
    join pg_catalog.pg_roles as r on r.oid = n.nspowner
    where n.nspname = 'penstock_ddl' and not r.rolsuper and r.rolname <> current_user
  ) then
    raise exception 'expected schema penstock_ddl to be owned by a superuser, it is not; drop it, or change its owner';
  end if;
  if not exists (
    select from pg_catalog.pg_proc as p
    join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
    where n.nspname = 'penstock_ddl' and p.proname = 'report' and p.pronargs = 0 and p.prosecdef and p.prosrc = body
      and p.proconfig = array['search_path=pg_catalog, pg_temp']
  ) then
    execute pg_catalog.format(
      'create or replace function penstock_ddl.report() returns event_trigger language plpgsql security definer '
      'set search_path = pg_catalog, pg_temp as %L', body
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

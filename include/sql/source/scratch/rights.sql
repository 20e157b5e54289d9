-- Whether this role is a superuser, and which predefined roles would let it reach the server's files and programs.
select
  r.rolsuper,
  array(
    select m.rolname::text
    from pg_roles m
    where m.rolname in ('pg_execute_server_program', 'pg_read_server_files', 'pg_write_server_files')
      and pg_has_role(r.oid, m.oid, 'member')
    order by 1
  )
from pg_roles r
where r.rolname = current_user

-- What settings are for this session, and for which role.
select current_user::text, name, setting
from pg_settings
where name = any (%(names)s::text[])
order by name

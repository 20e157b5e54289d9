-- what unqualified names in a migration mean: the database's own search_path, in the form that set_config takes
select substr(setting, length('search_path=') + 1)
from pg_db_role_setting as kept cross join unnest(kept.setconfig) as setting
where
    kept.setrole = 0
    and kept.setdatabase = (select oid from pg_database where datname = current_database())
    and setting like 'search\_path=%'

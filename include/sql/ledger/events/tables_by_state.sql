select coalesce(jsonb_object_agg(state, tables), '{}') as tables
from (select state, count(*) as tables from penstock.table where pipeline = %(name)s group by state) as counted

update penstock.pipeline
set lake_place = %(place)s
where name = %(name)s and lake_place is distinct from %(place)s

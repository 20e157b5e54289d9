update penstock.pipeline
set landing_mark = %(mark)s, landing_marked = %(marked)s
where name = %(name)s and not landing_marked

-- Before a slot is made the pipeline file may still change its mind.
update penstock.pipeline
set database = %(database)s, slot = %(slot)s, publication = %(publication)s
where name = %(name)s and state = 'new'

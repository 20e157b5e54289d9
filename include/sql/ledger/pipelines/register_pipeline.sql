-- Before a slot is made the pipeline file may still change its mind.
insert into penstock.pipeline as known (name, database, slot, publication)
values (%(name)s, %(database)s, %(slot)s, %(publication)s)
on conflict (name) do update
set database = excluded.database, slot = excluded.slot, publication = excluded.publication
where known.state = 'new'

insert into penstock.pipeline (name, database, slot, publication)
values (%(name)s, %(database)s, %(slot)s, %(publication)s)
on conflict (name) do nothing

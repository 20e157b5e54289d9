select name
from penstock.pipeline
where lake_place = %(place)s and name <> %(name)s and state <> 'torn_down'

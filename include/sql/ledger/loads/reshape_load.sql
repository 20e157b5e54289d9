update penstock.load
set columns = %(columns)s, shape = %(accepted)s::jsonb -> 'shape'
where pipeline = %(name)s and id = %(id)s and state in ('copying', 'building', 'ready')

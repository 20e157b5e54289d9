update penstock.load
set columns = %(columns)s, accepted = %(accepted)s
where pipeline = %(name)s and id = %(id)s and state in ('copying', 'building', 'ready')

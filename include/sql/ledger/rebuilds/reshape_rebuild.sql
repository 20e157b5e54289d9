update penstock.rebuild
set columns = %(columns)s, catalog_digest = %(catalog_digest)s
where pipeline = %(name)s and id = %(id)s and state in ('copying', 'building', 'ready')

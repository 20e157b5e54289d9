update penstock.pipeline
set consistent_point = %(consistent_point)s, position = %(consistent_point)s
where name = %(name)s and state = 'bootstrapping' and consistent_point is null

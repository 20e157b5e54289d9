update penstock.pipeline
set state = 'running'
where name = %(name)s and state in ('bootstrapping', 'running') and consistent_point is not null

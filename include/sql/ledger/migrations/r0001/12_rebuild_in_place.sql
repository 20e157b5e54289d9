create unique index rebuild_in_place on penstock.rebuild (pipeline, oid)
where kind <> 'shadow' and state in ('copying', 'building', 'ready')

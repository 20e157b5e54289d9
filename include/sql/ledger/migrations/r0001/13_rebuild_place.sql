create unique index rebuild_place on penstock.rebuild (pipeline, place) where state in ('copying', 'building', 'ready')

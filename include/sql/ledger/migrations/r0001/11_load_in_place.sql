create unique index load_in_place on penstock.load (pipeline, oid)
where cause in ('resync', 'replay') and state in ('copying', 'building', 'ready')

create unique index load_place on penstock.load (pipeline, place)
where cause in ('resync', 'replay', 'shadow') and state in ('copying', 'building', 'ready')

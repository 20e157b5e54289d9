create unique index window_by_end on penstock.window (pipeline, era, upto_lsn) where state <> 'planned'

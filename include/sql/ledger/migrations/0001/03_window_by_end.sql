create unique index window_by_end on penstock.window (pipeline, upto_lsn) where state <> 'planned'

create index source_clock_by_time on penstock.source_clock (pipeline, era, last_at)

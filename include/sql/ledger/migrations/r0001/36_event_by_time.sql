create index event_by_time on penstock.event (pipeline, at)

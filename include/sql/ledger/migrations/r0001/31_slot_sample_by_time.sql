create index slot_sample_by_time on penstock.slot_sample (pipeline, at)

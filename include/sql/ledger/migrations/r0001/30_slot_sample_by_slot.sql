create index slot_sample_by_slot on penstock.slot_sample (pipeline, slot, at)

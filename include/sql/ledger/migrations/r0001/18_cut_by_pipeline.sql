create index cut_by_pipeline on penstock.cut (pipeline, number)

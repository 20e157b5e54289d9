create index table_cut_by_table on penstock.table_cut (pipeline, oid, cut)

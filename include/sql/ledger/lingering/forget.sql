delete from penstock.kept_spark
where pipeline = %(name)s

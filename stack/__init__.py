"""The local stack: everything that Penstock needs around it on one machine, below `<project>/.local/`.

Two embedded PostgreSQL servers (source and control), a Java for Spark, Spark's jars and settings, Airflow's
four components. `python -m stack --help` lists the verbs; nothing in `plugins/` or `dags/` imports it.
"""

"""The only room that imports Airflow: it turns pipelines into contexts, tasks and DAG parts, and decides nothing else."""

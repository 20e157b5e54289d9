"""The CDC page in Airflow's UI: it reads the ledger and shows it; it changes nothing."""

"""Spark application: bring landed changes into lake tables, each staged for Airflow to publish.

    spark-submit --py-files <zip of penstock and penstock_spark> merge_changes.py --plan <uri> --result <uri> [--orders <uri>]

The plan and the result are JSON (`penstock.jobs.plans`). The catalog's address and login come by the environment
(`PENSTOCK_CATALOG_URI`, `_USER`, `_PASSWORD`). The result is written last: without it nothing has happened.
With `--orders` the application is kept, and carries out the plans that this file brings (`penstock.jobs.driver`).
"""

from penstock.jobs.plans import MergePlan
from penstock_spark import application, merge


def main() -> None:
    """Carry out the plan that the command line names."""
    application.carry_out("penstock-merge", __doc__, MergePlan.loads, merge.run, keeps=True)


if __name__ == "__main__":
    main()

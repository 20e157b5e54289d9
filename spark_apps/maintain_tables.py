"""Spark application: compact lake tables, expire their snapshots, and delete files that belong to nothing.

    spark-submit --py-files <zip of penstock and penstock_spark> maintain_tables.py --plan <uri> --result <uri>

The plan and the result are JSON (`penstock.jobs.maintenance_plan`). The catalog's address and login come by the
environment, as in `merge_changes.py`. It commits to main, but never changes which rows a table has.
"""

from penstock.jobs.maintenance_plan import MaintenancePlan
from penstock_spark import application, maintain


def main() -> None:
    """Carry out the plan that the command line names."""
    application.carry_out("penstock-maintain", __doc__, MaintenancePlan.loads, maintain.run)


if __name__ == "__main__":
    main()

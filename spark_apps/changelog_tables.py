"""Spark application: fill an interval of the changelogs from landed files, each staged for Airflow to publish.

    spark-submit --py-files <zip of penstock and penstock_spark> changelog_tables.py --plan <uri> --result <uri>

The plan and the result are JSON (`penstock.lake.changelog`). The catalog's address and login come by the environment
(`PENSTOCK_CATALOG_URI`, `_USER`, `_PASSWORD`). The result is written last: without it nothing has happened.
"""

from penstock.jobs.plans import ChangelogPlan
from penstock_spark import application, changelog


def main() -> None:
    """Carry out the plan that the command line names."""
    application.carry_out("penstock-changelog", __doc__, ChangelogPlan.loads, changelog.run)


if __name__ == "__main__":
    main()

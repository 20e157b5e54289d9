"""Spark application: copy ranges of source tables into the landing zone, all under one exported snapshot.

    spark-submit --py-files <zip of penstock and penstock_spark> copy_tables.py --plan <uri>

The plan is JSON (`penstock.jobs.plans.CopyPlan`). The source's address and login come by the environment
(`PENSTOCK_SOURCE_*`). Each finished table leaves a result file; one failed range ends the application.
"""

from penstock.jobs.plans import CopyPlan
from penstock_spark import application, copy


def main() -> None:
    """Carry out the plan that the command line names."""
    application.carry_out("penstock-copy", __doc__, CopyPlan.loads, copy.run, leaves_result=False)


if __name__ == "__main__":
    main()

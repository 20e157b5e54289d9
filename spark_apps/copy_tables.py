"""Spark application: copy ranges of source tables into the landing zone, all under one exported snapshot.

    spark-submit --py-files <zip of penstock and penstock_spark> copy_tables.py --plan <uri>

The plan is JSON (`penstock.lake.plan.CopyPlan`). The source's address and login come by the environment
(`PENSTOCK_SOURCE_*`). Each finished table leaves a result file; one failed range ends the application.
"""

from __future__ import annotations

import argparse
import os

from penstock.lake.plan import CopyPlan
from penstock_spark import copy, documents, session


def main() -> None:
    """Read the plan and carry it out."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--plan", required=True)
    given = arguments.parse_args()
    session.log_to_stderr()
    spark = session.start("penstock-copy")
    copy.run(spark, CopyPlan.loads(documents.read_text(spark, given.plan)), os.environ)
    spark.stop()


if __name__ == "__main__":
    main()

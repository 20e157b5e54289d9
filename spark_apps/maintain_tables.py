"""Spark application: compact lake tables, expire their snapshots, and delete files that belong to nothing.

    spark-submit --py-files <zip of penstock and penstock_spark> maintain_tables.py --plan <uri> --result <uri>

The plan and the result are JSON (`penstock.lake.maintenance`). The catalog's address and login come by the
environment, as in `merge_changes.py`. It commits to main, but never changes which rows a table has.
"""

from __future__ import annotations

import argparse
import os

from penstock.lake.maintenance import MaintenancePlan
from penstock_spark import documents, maintain, session


def main() -> None:
    """Read the plan, carry it out, write the result."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--plan", required=True)
    arguments.add_argument("--result", required=True)
    given = arguments.parse_args()
    session.log_to_stderr()
    spark = session.start("penstock-maintain")
    plan = MaintenancePlan.loads(documents.read_text(spark, given.plan))
    result = maintain.run(spark, plan, os.environ)
    documents.write_text(spark, given.result, result.dumps())
    spark.stop()


if __name__ == "__main__":
    main()

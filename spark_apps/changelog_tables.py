"""Spark application: fill an interval of the changelogs from landed files, each on a branch, for Airflow to publish.

    spark-submit --py-files <zip of penstock and penstock_spark> changelog_tables.py --plan <uri> --result <uri>

The plan and the result are JSON (`penstock.lake.changelog`). The catalog's address and login come by the environment
(`PENSTOCK_CATALOG_URI`, `_USER`, `_PASSWORD`). The result is written last: without it nothing has happened.
"""

from __future__ import annotations

import argparse
import os

from penstock.lake.changelog import ChangelogPlan
from penstock_spark import changelog, documents, session


def main() -> None:
    """Read the plan, carry it out, write the result."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--plan", required=True)
    arguments.add_argument("--result", required=True)
    given = arguments.parse_args()
    session.log_to_stderr()
    spark = session.start("penstock-changelog")
    plan = ChangelogPlan.loads(documents.read_text(spark, given.plan))
    result = changelog.run(spark, plan, os.environ)
    documents.write_text(spark, given.result, result.dumps())
    spark.stop()


if __name__ == "__main__":
    main()

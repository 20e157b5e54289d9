"""What the Spark applications are made of: the only folder that imports pyspark."""

import os
import sys

from penstock_spark.installed import prefer_installed

prefer_installed(sys.path, os.environ)

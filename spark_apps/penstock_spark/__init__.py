"""What the Spark applications are made of: the only folder that imports pyspark."""

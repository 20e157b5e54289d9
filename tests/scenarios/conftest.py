"""The scenarios' fixtures."""

from tests.env_fixtures import around, env, env15, env16, penstock, real_submit, shell_with_spark
from tests.faults.conftest import new_pipeline

__all__ = ["around", "env", "env15", "env16", "new_pipeline", "penstock", "real_submit", "shell_with_spark"]

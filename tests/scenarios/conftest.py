"""The scenarios' fixtures."""

from tests.env_fixtures import around, env, env15, env16, penstock, shell_with_spark

__all__ = ["around", "env", "env15", "env16", "penstock", "shell_with_spark"]

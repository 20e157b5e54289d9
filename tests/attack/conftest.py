"""The attacks' fixtures: the scenarios' own."""

from tests.env_fixtures import around, env, env15, env16, env18, penstock, real_submit, shell_with_spark

__all__ = ["around", "env", "env15", "env16", "env18", "penstock", "real_submit", "shell_with_spark"]

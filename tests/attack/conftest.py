"""The attacks' fixtures: the scenarios' own."""

from tests.env_fixtures import env, env15, env16, landing_env, landing_env16, landing_env18, penstock, shell_with_spark

__all__ = ["env", "env15", "env16", "landing_env", "landing_env16", "landing_env18", "penstock", "shell_with_spark"]

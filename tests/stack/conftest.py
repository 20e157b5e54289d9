"""The set-up's fixtures: a pipeline without Spark."""

from tests.env_fixtures import landing_env16

__all__ = ["landing_env16"]

"""The set-up's fixtures: a pipeline without Spark."""

from tests.env_fixtures import around, env16

__all__ = ["around", "env16"]

"""The torture's fixtures: the scenarios' own."""

from tests.env_fixtures import around, env16

__all__ = ["around", "env16"]

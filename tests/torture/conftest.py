"""The torture's fixtures: the scenarios' own."""

from tests.env_fixtures import env16, landing_env16

__all__ = ["env16", "landing_env16"]

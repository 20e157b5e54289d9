"""The torture's fixtures: the scenarios' own."""

from tests.worlds import bare16, world16

__all__ = ["bare16", "world16"]

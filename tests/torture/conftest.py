"""The torture's fixtures: the scenarios' own."""

from tests.worlds import world16

__all__ = ["world16"]

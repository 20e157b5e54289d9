"""The set-up's fixtures: a world without Spark."""

from tests.worlds import bare16

__all__ = ["bare16"]

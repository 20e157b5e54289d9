"""The attacks' fixtures: the scenarios' own."""

from tests.worlds import bare, bare16, penstock, shell_with_spark, world, world15, world16

__all__ = ["bare", "bare16", "penstock", "shell_with_spark", "world", "world15", "world16"]

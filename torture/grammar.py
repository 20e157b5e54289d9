"""One generator, one catalog, one change: the rules of `torture.rules`, each with its weight, drawn from."""

from __future__ import annotations

import random
from collections.abc import Iterable

from torture.model import Model
from torture.rules import RULES, Change, columns, partitions, tables, types

__all__ = ["Change", "columns", "draw", "partitions", "tables", "types"]


def draw(dice: random.Random, model: Model, *, full: bool, only: Iterable[str] = ()) -> Change | None:
    """Choose a rule and carry it out on the model; None when it has nothing to work on."""
    wanted = set(only)
    rules = [each for each in RULES if (each.name in wanted if wanted else full or each.safe)]
    chosen = dice.choices(rules, weights=[each.weight for each in rules])[0]
    made = chosen.build(dice, model)
    if made is None or isinstance(made, Change):
        return made
    return Change(chosen.name, tuple(made))

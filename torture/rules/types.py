"""Enums, domains and composite types: labels, names and attributes that change under the rows."""

from __future__ import annotations

import random

from torture import writers
from torture.model import Model
from torture.rules import rule


@rule(2, safe=True)
def add_label(dice: random.Random, model: Model) -> list[str] | None:
    """Add a label to the enum, anywhere."""
    labels = model.labels.get("mood", ())
    if not labels or len(labels) > 12:
        return None
    fresh = next(f"mood {n}" for n in range(100) if f"mood {n}" not in labels)
    place = dice.choice(["", f" before '{dice.choice(labels)}'"])
    return [f"alter type mood add value '{fresh}'{place}"]


@rule(3)
def rename_label(dice: random.Random, model: Model) -> list[str] | None:
    """Rename a label, perhaps after an insert with it, perhaps back."""
    labels = model.labels.get("mood", ())
    tables = [table for table in model.roots if any(column.kind == "e" for column in table.columns)]
    if not labels or not tables:
        return None
    table, label = dice.choice(tables), dice.choice(labels)
    fresh = next(f"name {n}" for n in range(100) if f"name {n}" not in labels)
    there = f"alter type mood rename value '{label}' to '{fresh}'"
    back = f"alter type mood rename value '{fresh}' to '{label}'"
    between = writers.insert(dice, Model(model.tables, {"mood": (fresh,)}, {}), table)
    before = writers.insert(dice, Model(model.tables, {"mood": (label,)}, {}), table)
    return dice.choice(([there, between, back], [before, there], [there, between], [there]))


@rule(2)
def other_attributes(dice: random.Random, model: Model) -> list[str] | None:
    """Add, drop or rename an attribute of the composite type."""
    names = model.labels.get("spot", ())
    if not names:
        return None
    fresh = next(f"a{n}" for n in range(100) if f"a{n}" not in names)
    changes = [f"rename attribute {dice.choice(names)} to {fresh}"]
    if len(names) < 5:
        changes.append(f"add attribute {fresh} {dice.choice(('int', 'text'))}")
    if len(names) > 1:
        changes.append(f"drop attribute {dice.choice(names)}")
    return [f"alter type spot {dice.choice(changes)} cascade"]


@rule(1)
def rename_type(dice: random.Random, model: Model) -> list[str] | None:
    """Rename the enum or the domain there and back."""
    kind, name = dice.choice((("type", "mood"), ("domain", "amount")))
    del model
    return [f"alter {kind} {name} rename to {name}_", f"alter {kind} {name}_ rename to {name}"]


@rule(1)
def domain_default(dice: random.Random, model: Model) -> list[str] | None:
    """Change the domain's default."""
    del model
    return [f"alter domain amount set default {dice.randrange(1, 50)}"]

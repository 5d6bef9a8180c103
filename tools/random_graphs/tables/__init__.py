"""Sensible shapes of inputs and values of parameters, which definitions do not contain.

A table's key is `Operator.parameter`, `shape_rule.parameter`, `shape_rule.*` for all inputs but the first, or
the name of a parameter alone; the first existing key applies.
"""

from __future__ import annotations

import importlib
import pkgutil

from random_graphs.draft import Choice

CHOICES: dict[str, Choice] = {}
RANKS: dict[str, tuple[int, int]] = {}
"""Minimum and maximum rank of the first input, by operator or shape rule."""
for _module in pkgutil.iter_modules(__path__):
    _found = importlib.import_module(f"{__name__}.{_module.name}")
    CHOICES |= _found.CHOICES
    RANKS |= _found.RANKS

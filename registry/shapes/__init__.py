"""Shape rules: what an operator's output shapes follow from, one named rule for every way.

A definition names its rule (`shape: broadcast`). A rule states only what is certain: an output of unknown
rank is `None`, and so is a dimension that does not follow.
"""

from __future__ import annotations

import importlib
import pkgutil

from opshift.registry.shapes.context import Rule, Shape, ShapeContext
from opshift.registry.shapes.table import KEEPS_RANK, RULES, rule

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["KEEPS_RANK", "RULES", "Rule", "Shape", "ShapeContext", "rule"]

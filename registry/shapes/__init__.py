"""Shape inference rules, by the name that definitions use (`shape: broadcast`).

A rule returns certain facts only: an output of unknown rank is `None`, and so is each unknown dimension.
"""

from __future__ import annotations

import importlib
import pkgutil

from opshift.registry.shapes.rule_table import KEEPS_RANK, SHAPE_RULES, Shape, ShapeContext, ShapeRule, rule

# Importing a module registers its rules.
for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["KEEPS_RANK", "SHAPE_RULES", "Shape", "ShapeContext", "ShapeRule", "rule"]

"""Nodes for operator versions, or changes between them, that ONNX's own cases do not exercise."""

from __future__ import annotations

import importlib
import pkgutil
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache

from support.nodes.row import Row


@cache
def nodes() -> Mapping[tuple[str, str, int], Sequence[Row]]:
    """Return rows by domain, operator and version from all modules of this package."""
    found: dict[tuple[str, str, int], list[Row]] = defaultdict(list)
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        if not module.name.endswith(".row"):
            for each in importlib.import_module(module.name).rows():
                found[each.domain, each.op, each.version].append(each)
    return found

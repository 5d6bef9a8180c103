"""Nodes of all operators whose versions ONNX's own cases do not show, or not what changed between them."""

from __future__ import annotations

import importlib
import pkgutil
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache

from support.nodes.row import Row


@cache
def nodes() -> Mapping[tuple[str, str, int], Sequence[Row]]:
    """By domain, operator and version; modules are found, not listed."""
    found: dict[tuple[str, str, int], list[Row]] = defaultdict(list)
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        if not module.name.endswith(".row"):
            for each in importlib.import_module(module.name).rows():
                found[each.domain, each.op, each.version].append(each)
    return found

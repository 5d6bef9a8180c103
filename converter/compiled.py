"""Precompiled paths through the version graph, and the module of each adapter.

`tools/generate.py` writes `compiled.json` next to this file. It spares a conversion the import of networkx
and of adapters for operators that the model does not use. It is only a shortcut: paths that it lacks, or
that were compiled for different operator versions, are computed from the definitions.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from opshift.adapters.table import Adapter, Pair, adapter_table, registered
from opshift.registry.models import Operator

FILE: Final = Path(__file__).with_name("compiled.json")


@cache
def compiled() -> Mapping[str, Any]:
    """Return `operators` with their `versions` and `paths`, and the module of each of the `adapters`."""
    data: Mapping[str, Any] = json.loads(FILE.read_text("ascii"))
    return data


def compiled_path(operator: Operator, start: int, goal: int) -> tuple[int, ...] | None:
    """Return the versions between two versions of an operator, both included.

    Returns:
        `None` if the path is missing or was compiled for different versions of the operator.
    """
    entry = compiled()["operators"].get(f"{operator.domain}.{operator.name}")
    if entry is None or entry["versions"] != [each.since_version for each in operator.versions]:
        return None
    path = entry["paths"].get(f"{start} -> {goal}")
    return None if path is None else tuple(path)


class CompiledTable(Mapping[Pair, Adapter]):
    """Table of adapters that imports the module of an adapter on first use."""

    def __getitem__(self, pair: Pair) -> Adapter:
        module = compiled()["adapters"].get(str(pair))
        if module is not None and pair not in registered():
            importlib.import_module(module)
        return registered()[pair] if pair in registered() else adapter_table()[pair]

    def __contains__(self, pair: object) -> bool:
        return pair in registered() or str(pair) in compiled()["adapters"]

    def __iter__(self) -> Iterator[Pair]:
        return iter(adapter_table())

    def __len__(self) -> int:
        return len(adapter_table())

"""What is told by the graph of versions and by the adapters' modules, worked out in advance.

`compiled.json` beside this file is written by `tools/generate.py`. It saves a conversion to import
networkx, and the adapters of operators that the model has not. It is a shortcut only: what it does not
have, or has for other versions than the definitions, is looked up where it comes from.
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
    """`versions` and `paths` by operator, and `adapters`: the module of each step's function."""
    found: Mapping[str, Any] = json.loads(FILE.read_text("ascii"))
    return found


def compiled_path(operator: Operator, start: int, goal: int) -> tuple[int, ...] | None:
    """The versions on the way; `None` if they are not known for the versions that the operator has."""
    known = compiled()["operators"].get(f"{operator.domain}.{operator.name}")
    if known is None or known["versions"] != [each.since_version for each in operator.versions]:
        return None
    path = known["paths"].get(f"{start} -> {goal}")
    return None if path is None else tuple(path)


class CompiledTable(Mapping[Pair, Adapter]):
    """The table of adapters, each of whose modules is imported when a step of it is asked for."""

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

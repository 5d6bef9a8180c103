"""Registry: time to look up an operator by name, and to load definitions."""

from __future__ import annotations

import shutil
import statistics
import sys
import timeit
from functools import partial
from pathlib import Path

from onnx import defs, helper

import opshift
from measuring import in_turn, printed
from opshift.opsets import OPSETS
from settings import Settings
from tables import Cell, Findings, Table, at_least, at_most, seconds

OPSET = 17
LOOK_UPS = {
    "a name at an opset": (
        "for node in named: get_schema(node, 17)",
        "for node in named: theirs(node, 17)",
    ),
    "a node under opset imports": (
        "for node in nodes: resolve(node, imports)",
        "for node in nodes: theirs(node.op_type, imports[node.domain], node.domain)",
    ),
}
"""Label of a look-up to the statements for opshift and for ONNX."""
FASTER = 10
"""Required speedup over ONNX."""
READY = """
import time
from pathlib import Path
from opshift.registry import loader
from opshift.registry.registry import Registry
start = time.perf_counter()
Registry((Path({folder!r}),)).{query}
print(time.perf_counter() - start)
"""
ALL = "get_all_schemas_with_history()"
DEFINITIONS = {
    "one operator, Conv, compiled": ("operator('Conv')", True, 20.0),
    "all operators, compiled": (ALL, True, 300.0),
    "all operators, from YAML": (ALL, False, 300.0),
}
"""Label to a query of a new registry, whether it reads the project's folder, and the limit in milliseconds.

A copy of the folder has no compiled definitions and is read from YAML. The time of imports does not count.
"""


def measure(settings: Settings) -> Findings:
    """Measure look-ups in turn, and loading of definitions in separate processes."""
    columns = ("look-up", "times as fast as ONNX", "opshift, CPU", "onnx.defs.get_schema, CPU")
    looked_up = Table(f"Look-ups, opset {OPSET}", columns, [_looked_up(each, settings) for each in LOOK_UPS])
    copy = shutil.copytree(OPSETS, settings.folder / "opsets")
    ready = [_ready(each, copy, settings) for each in DEFINITIONS]
    shutil.rmtree(copy)
    return Findings(
        [looked_up, Table("Definitions, in a new process", ("definitions", "time to load"), ready)]
    )


def _looked_up(label: str, settings: Settings) -> list[Cell]:
    registry = opshift.default_registry()
    named = [each for each in registry.names() if registry.has(each, OPSET)]
    names = {
        "named": named,
        "nodes": [helper.make_node(each, [], []) for each in named],
        "imports": {"": OPSET},
        "get_schema": registry.get_schema,
        "resolve": registry.resolve,
        "theirs": defs.get_schema,
    }
    works = [partial(timeit.Timer(code, globals=names).timeit, 100) for code in LOOK_UPS[label]]
    in_turn(works, 1)  # fills caches, which do not count
    ours, theirs = (each / 100 / len(named) for each in in_turn(works, settings.rounds(21)))
    return [label, at_least(theirs / ours, FASTER), seconds(ours), seconds(theirs)]


def _ready(label: str, copy: Path, settings: Settings) -> list[Cell]:
    query, is_compiled, most = DEFINITIONS[label]
    folder = OPSETS if is_compiled else copy
    command = [sys.executable, "-c", READY.format(query=query, folder=str(folder))]
    duration = statistics.median(printed(command)[0] for _ in range(settings.rounds(15)))
    return [label, at_most(duration * 1e3, most, " ms")]

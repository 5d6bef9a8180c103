"""The registry: which operator a name means, and how long its definitions take to be there."""

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
from opshift.registry.definition_files import OPSETS
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
"""What opshift runs, and what ONNX does."""
FASTER = 10
READY = """
import time
from pathlib import Path
from opshift.registry import loader
from opshift.registry.catalogue import Registry
start = time.perf_counter()
Registry((Path({folder!r}),)).{asked}
print(time.perf_counter() - start)
"""
ALL = "get_all_schemas_with_history()"
DEFINITIONS = {
    "one operator, Conv, compiled": ("operator('Conv')", True, 20.0),
    "all operators, compiled": (ALL, True, 300.0),
    "all operators, from YAML": (ALL, False, 300.0),
}
"""What is asked of a new registry, whether of the project's own folder, and the milliseconds it may take.

A copy of the folder is read from YAML, since nothing is compiled of it. Modules are imported before.
"""


def measure(settings: Settings) -> Findings:
    """Time look-ups in turn, and definitions in processes of their own."""
    columns = ("look-up", "times as fast as ONNX", "opshift, CPU", "onnx.defs.get_schema, CPU")
    looked_up = Table(f"Look-ups, opset {OPSET}", columns, [_looked_up(each, settings) for each in LOOK_UPS])
    copy = shutil.copytree(OPSETS, settings.folder / "opsets")
    ready = [_ready(each, copy, settings) for each in DEFINITIONS]
    shutil.rmtree(copy)
    return Findings([looked_up, Table("Definitions, in a new process", ("what", "until it is there"), ready)])


def _looked_up(what: str, settings: Settings) -> list[Cell]:
    registry = opshift.default_registry()
    named = [each for each in registry.names() if registry.has(each, OPSET)]
    given = {
        "named": named,
        "nodes": [helper.make_node(each, [], []) for each in named],
        "imports": {"": OPSET},
        "get_schema": registry.get_schema,
        "resolve": registry.resolve,
        "theirs": defs.get_schema,
    }
    works = [partial(timeit.Timer(code, globals=given).timeit, 100) for code in LOOK_UPS[what]]
    in_turn(works, 1)
    ours, theirs = (each / 100 / len(named) for each in in_turn(works, settings.rounds(21)))
    return [what, at_least(theirs / ours, FASTER), seconds(ours), seconds(theirs)]


def _ready(what: str, copy: Path, settings: Settings) -> list[Cell]:
    asked, is_compiled, most = DEFINITIONS[what]
    folder = OPSETS if is_compiled else copy
    command = [sys.executable, "-c", READY.format(asked=asked, folder=str(folder))]
    taken = statistics.median(printed(command)[0] for _ in range(settings.rounds(15)))
    return [what, at_most(taken * 1e3, most, " ms")]

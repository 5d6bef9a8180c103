"""The registry: which operator a name means, and how long its definitions take to be there."""

from __future__ import annotations

import statistics
import sys
import timeit
from functools import partial

from onnx import defs, helper

import opshift
from measuring import in_turn, printed
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
from opshift.registry.catalogue import default_registry
start = time.perf_counter()
default_registry().{}
print(time.perf_counter() - start)
"""
DEFINITIONS = {
    "one operator, Conv": ("operator('Conv')", 20.0),
    "all operators": ("get_all_schemas_with_history()", 300.0),
}
"""What is asked of a new registry, and the milliseconds that it may take."""


def measure(settings: Settings) -> Findings:
    """Time look-ups in turn, and definitions in processes of their own."""
    columns = ("look-up", "times as fast as ONNX", "opshift, CPU", "onnx.defs.get_schema, CPU")
    looked_up = Table(f"Look-ups, opset {OPSET}", columns, [_looked_up(each, settings) for each in LOOK_UPS])
    ready = [_ready(each, settings) for each in DEFINITIONS]
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


def _ready(what: str, settings: Settings) -> list[Cell]:
    asked, most = DEFINITIONS[what]
    command = [sys.executable, "-c", READY.format(asked)]
    taken = statistics.median(printed(command)[0] for _ in range(settings.rounds(15)))
    return [what, at_most(taken * 1e3, most, " ms")]

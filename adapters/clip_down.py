"""Clip: bounds are inputs from 11 on, and integers may be clipped from 12 on."""

from __future__ import annotations

from collections.abc import Callable

from opshift.adapters.legal_types import require_types
from opshift.adapters.node import Node, Tensor
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME

SMALL = ("int8", "uint8", "int16", "uint16")
"""Integers that a 32-bit float holds."""
LIMITS = {"float": 3.4028234663852886e38, "float16": 65504.0, "double": 1.7976931348623157e308}
"""What an absent bound means from 11 on: the greatest finite number of the type, and its negative."""
STRETCHED = 8
"""From this opset on Max and Min stretch a bound to the shape of the data."""
Bound = tuple[str, str, str, str]
BOUNDS: tuple[Bound, Bound] = (("min", "Max", "Less", "1"), ("max", "Min", "Greater", "2"))
"""Of each bound: its attribute, what keeps to it, what tells that a number is beyond it, and its position."""


@adapter("Clip", 12, 11)
def integers_are_kept_in_bounds(node: Node, out: Rewriter) -> None:
    """Small ones as floats; 32 bits by Max and Min, which casts bridge; 64 bits by comparing and choosing."""
    element_type = out.element_type(node.inputs[0])
    if element_type in SMALL:
        _as_float(node, element_type, out)
    elif element_type in ("int32", "uint32"):
        _step_by_step(node, out, lambda value, bound, kind: out.emit(kind[1], [value, bound], opset=12))
    elif element_type in ("int64", "uint64"):
        _step_by_step(node, out, lambda value, bound, kind: _chosen(value, bound, kind[2], out))
    else:
        require_types(node, out)
        out.become(node)


def _as_float(node: Node, element_type: str, out: Rewriter) -> None:
    names = []
    for name in node.inputs:
        known = out.constant_value(name)
        if known is not None:
            names.append(out.tensor(Tensor("float", known.dims, tuple(map(float, known.values)))))
        else:
            names.append(out.emit("Cast", [name], to=BY_NAME["float"].number) if name else "")
    clipped = out.fresh("clip")
    out.become(node, inputs=names, outputs=[clipped])
    out.emit("Cast", [clipped], node.outputs, to=BY_NAME[element_type].number)


def _step_by_step(node: Node, out: Rewriter, keep: Callable[[str, str, Bound], str]) -> None:
    """First the lower bound, then the upper one, which wins if they contradict each other."""
    value = node.inputs[0]
    for kind in BOUNDS:
        bound = node.input(int(kind[3]))
        value = keep(value, bound, kind) if bound else value
    out.emit("Identity", [value], node.outputs)


def _chosen(value: str, bound: str, beyond: str, out: Rewriter) -> str:
    return out.emit("Where", [out.emit(beyond, [value, bound]), bound, value])


@adapter("Clip", 11, 6)
def bounds_become_attributes(node: Node, out: Rewriter) -> None:
    """32-bit attributes; other bounds are kept to by Max and Min."""
    require_types(node, out)
    element_type = out.element_type(node.inputs[0])
    limit = LIMITS[element_type]
    stated = {}
    for kind in BOUNDS:
        name, bound = kind[0], node.input(int(kind[3]))
        absent = limit if name == "max" else -limit
        value = out.constant_value(bound)
        if element_type == "double" or (bound and value is None):
            _by_max_and_min(node, element_type, out)
            return
        if value is not None or element_type != "float":
            stated[name] = value.scalar if value is not None else absent
    out.become(node, inputs=node.inputs[:1], attributes=stated)


def _by_max_and_min(node: Node, element_type: str, out: Rewriter) -> None:
    limit = LIMITS[element_type]
    value = node.inputs[0]
    for name, keeping, beyond, position in BOUNDS:
        bound = node.input(int(position)) or out.constant(limit if name == "max" else -limit, element_type)
        if out.default_opset < STRETCHED:
            is_beyond = out.emit(beyond, [value, bound], opset=9)
            value = out.emit("Where", [is_beyond, bound, value], opset=9)
        else:
            value = out.emit(keeping, [value, bound], opset=STRETCHED)
    out.emit("Identity", [value], node.outputs)

"""Scores of trees: TreeEnsemble sums votes up, nodes of ai.onnx add base values and apply the transform.

TreeEnsemble has a `post_transform` too, but base values come before it, and onnxruntime takes the numbers of
SOFTMAX and LOGISTIC for each other; it is left at NONE.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import MappingProxyType

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.tree_structure import Forest
from opshift.adapters.tree_table import TreeTable
from opshift.registry.element_types import BY_NAME

AVERAGE, SUM = 0, 1
AGGREGATES = MappingProxyType({b"AVERAGE": AVERAGE, b"SUM": SUM, b"MIN": 2, b"MAX": 3})
TRANSFORMS = MappingProxyType({b"NONE": 0, b"SOFTMAX": 1, b"LOGISTIC": 2, b"SOFTMAX_ZERO": 3, b"PROBIT": 4})
"""Both by the numbers that TreeEnsemble has for them."""
Stage = Callable[[str, Rewriter, int | tuple[str, ...]], str]
"""Emits what takes a value further, into the named output or a fresh one."""


def emit(
    op_type: str, inputs: list[str], out: Rewriter, outputs: int | tuple[str, ...] = 1, **attributes: object
) -> str:
    """Emit a node of ai.onnx, written for opset 13."""
    return out.emit(op_type, inputs, outputs, domain="", opset=13, **attributes)


def emit_ensemble(
    node: Node,
    forest: Forest,
    targets: int,
    name: str,
    out: Rewriter,
    aggregate: int = SUM,
    transform: int = 0,
) -> None:
    """Emit the TreeEnsemble that takes the node's place, with its scores under `name`."""
    table = TreeTable(forest, pads_with_zero=aggregate in (SUM, AVERAGE))
    trees = len(forest.trees)
    divides = aggregate == AVERAGE and len(table.roots) != trees
    stated = {
        "n_targets": targets,
        "aggregate_function": SUM if divides else aggregate,
        "post_transform": transform,
    }
    data = node.inputs[0]
    if out.element_type(data) != forest.element_type:
        data = cast(data, out, 1, to=forest.element_type)
    total = out.fresh("total") if divides else name
    attributes = {**table.attributes(), **stated}
    out.become(node, op_type="TreeEnsemble", inputs=[data], outputs=[total], attributes=attributes)
    if divides:
        emit("Div", [total, out.constant(float(trees), forest.element_type)], out, (name,))


def in_turn(name: str, stages: list[Stage], result: str, out: Rewriter) -> None:
    """Take a value through some stages; the last gives `result`."""
    for position, stage in enumerate(stages, start=1):
        name = stage(name, out, (result,) if position == len(stages) else 1)


def base_stage(base: tuple[float, ...], element_type: str) -> list[Stage]:
    """Adding the base values, unless they are zero."""

    def add(name: str, out: Rewriter, outputs: int | tuple[str, ...]) -> str:
        return emit("Add", [name, out.constant(base, element_type)], out, outputs)

    return [add] if any(base) else []


def last_stages(transform: bytes, element_type: str) -> list[Stage]:
    """The transform of all targets of a row, then float, in which all results are."""
    stages = [_STAGES[transform](element_type)] if transform != b"NONE" else []
    return [*stages, cast] if element_type == "double" else stages


def transform_of(node: Node) -> bytes:
    """The stated transform.

    Raises:
        CannotConvert: there is no such transform.
    """
    stated: bytes = node.attribute("post_transform", b"NONE")
    if stated not in TRANSFORMS:
        raise CannotConvert(f"{stated.decode(errors='replace')!r} is no post_transform")
    return stated


def cast(name: str, out: Rewriter, outputs: int | tuple[str, ...], to: str = "float") -> str:
    """The same numbers as another type."""
    return emit("Cast", [name], out, outputs, to=BY_NAME[to].number)


def _logistic(_: str, name: str, out: Rewriter, outputs: int | tuple[str, ...]) -> str:
    return emit("Sigmoid", [name], out, outputs)


def _softmax(_: str, name: str, out: Rewriter, outputs: int | tuple[str, ...]) -> str:
    return emit("Softmax", [name], out, outputs, axis=-1)


def _softmax_zero(of: str, name: str, out: Rewriter, outputs: int | tuple[str, ...]) -> str:
    """The softmax of those scores that are not zero; the others stay (almost) zero."""
    highest = emit("ReduceMax", [name], out, axes=[1], keepdims=1)
    counts = emit("Greater", [emit("Abs", [name], out), out.constant(1e-7, of)], out)
    powers = emit("Exp", [emit("Sub", [name, highest], out)], out)
    counted = emit("Where", [counts, powers, out.constant(0.0, of)], out)
    total = emit("ReduceSum", [counted, out.constant([1], "int64")], out, keepdims=1)
    rest = emit("Mul", [name, emit("Exp", [emit("Neg", [highest], out)], out)], out)
    return emit("Div", [emit("Where", [counts, powers, rest], out), total], out, outputs)


def _probit(of: str, name: str, out: Rewriter, outputs: int | tuple[str, ...]) -> str:
    """The inverse of the normal distribution, as both onnxruntime and onnx.reference approximate it."""
    one, two = out.constant(1.0, of), out.constant(2.0, of)
    centred = emit("Sub", [emit("Mul", [name, two], out), one], out)
    product = emit("Mul", [emit("Sub", [one, centred], out), emit("Add", [one, centred], out)], out)
    log = emit("Log", [product], out)
    half = emit("Mul", [log, out.constant(0.5, of)], out)
    first = emit("Add", [out.constant(2 / (3.14159 * 0.147), of), half], out)
    second = emit("Mul", [log, out.constant(1 / 0.147, of)], out)
    root = emit("Sqrt", [emit("Sub", [emit("Mul", [first, first], out), second], out)], out)
    size = emit("Sqrt", [emit("Sub", [root, first], out)], out)
    signed = emit("Mul", [emit("Sign", [centred], out), size], out)
    return emit("Mul", [signed, out.constant(1.41421356, of)], out, outputs)


_STAGES: MappingProxyType[bytes, Callable[[str], Stage]] = MappingProxyType(
    {
        b"SOFTMAX": lambda of: partial(_softmax, of),
        b"LOGISTIC": lambda of: partial(_logistic, of),
        b"SOFTMAX_ZERO": lambda of: partial(_softmax_zero, of),
        b"PROBIT": lambda of: partial(_probit, of),
    }
)

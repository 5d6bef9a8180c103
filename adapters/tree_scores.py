"""Scores of trees: TreeEnsemble sums votes up, nodes behind it add base values and apply the transform.

TreeEnsemble has a `post_transform` too, but base values come before it, and onnxruntime takes its numbers for
SOFTMAX and LOGISTIC for each other; it is left at NONE wherever it would have an effect there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import MappingProxyType
from typing import Any

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
Stage = Callable[[str, str, Rewriter], object]
"""Emits what takes a value further: from one name to another."""


def emit(op_type: str, inputs: list[str], out: Rewriter, result: str = "", **attributes: Any) -> str:
    """Emit a node of ai.onnx, in the form of opset 9, for the value `result` or a fresh one."""
    return out.emit(op_type, inputs, [result] if result else 1, domain="", opset=9, **attributes)


def emit_ensemble(
    node: Node, forest: Forest, name: str, out: Rewriter, aggregate: int = SUM, transform: int = 0
) -> None:
    """Emit the TreeEnsemble that takes the node's place, with its scores under `name`."""
    table = TreeTable(forest, pads_with_zero=aggregate in (SUM, AVERAGE))
    trees = len(forest.trees)
    divides = aggregate == AVERAGE and len(table.roots) != trees
    attributes = {
        **table.attributes(),
        "n_targets": forest.targets,
        "aggregate_function": SUM if divides else aggregate,
        "post_transform": transform,
    }
    data = node.inputs[0]
    if out.element_type(data) != forest.element_type:
        data = cast(data, "", out, to=forest.element_type)
    total = out.fresh("total") if divides else name
    out.become(node, op_type="TreeEnsemble", inputs=[data], outputs=[total], attributes=attributes)
    if divides:
        emit("Div", [total, out.constant(float(trees), forest.element_type)], out, name)


def in_turn(name: str, stages: list[Stage], result: str, out: Rewriter) -> None:
    """Take a value through some stages; the last gives `result`."""
    for position, stage in enumerate(stages, start=1):
        following = result if position == len(stages) else out.fresh("scores")
        stage(name, following, out)
        name = following


def base_stage(base: tuple[float, ...], element_type: str) -> list[Stage]:
    """Adding the base values, unless they are zero."""

    def add(name: str, result: str, out: Rewriter) -> None:
        emit("Add", [name, out.constant(base, element_type)], out, result)

    return [add] if any(base) else []


def last_stages(transform: bytes, targets: int, element_type: str) -> list[Stage]:
    """The transform of all targets of a row, then float, in which all results are."""
    narrowing: list[Stage] = [cast] if element_type == "double" else []
    if transform == b"NONE":
        return narrowing
    if transform in _OPERATORS:
        return [partial(_apply, transform), *narrowing]
    return [*narrowing, partial(_apply_by_regressor, transform, targets)]


def transform_of(node: Node) -> bytes:
    """The stated transform.

    Raises:
        CannotConvert: there is no such transform.
    """
    stated: bytes = node.attribute("post_transform", b"NONE")
    if stated not in TRANSFORMS:
        raise CannotConvert(f"{stated.decode(errors='replace')!r} is no post_transform")
    return stated


def cast(name: str, result: str, out: Rewriter, to: str = "float") -> str:
    """The same numbers as another type."""
    return emit("Cast", [name], out, result, to=BY_NAME[to].number)


_OPERATORS = MappingProxyType({b"SOFTMAX": ("Softmax", {"axis": 1}), b"LOGISTIC": ("Sigmoid", {})})


def _apply(transform: bytes, name: str, result: str, out: Rewriter) -> None:
    op_type, attributes = _OPERATORS[transform]
    emit(op_type, [name], out, result, **attributes)


def _apply_by_regressor(transform: bytes, targets: int, name: str, result: str, out: Rewriter) -> None:
    """A transform that ai.onnx has no operator for, done by a LinearRegressor that changes nothing else."""
    identity = [float(row == column) for row in range(targets) for column in range(targets)]
    attributes: dict[str, Any] = {"coefficients": identity, "targets": targets, "post_transform": transform}
    out.emit("LinearRegressor", [name], [result], **attributes)

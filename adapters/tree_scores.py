"""Scores of trees: TreeEnsemble sums the votes, further nodes add base values and apply the transform.

TreeEnsemble has `post_transform`, too, but base values precede it, and onnxruntime swaps its numbers for
SOFTMAX and LOGISTIC. It remains NONE where it would have an effect.
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
"""Numbers of aggregates and transforms in TreeEnsemble."""
Stage = Callable[[str, str, Rewriter], object]
"""Emits a stage that reads the value of the first name and produces that of the second."""


def emit(op_type: str, inputs: list[str], out: Rewriter, result: str = "", **attributes: Any) -> str:
    """Emit a node of ai.onnx, written for opset 9, with the output `result` or a fresh name."""
    return out.emit(op_type, inputs, [result] if result else 1, domain="", opset=9, **attributes)


def emit_ensemble(
    node: Node, forest: Forest, name: str, out: Rewriter, aggregate: int = SUM, transform: int = 0
) -> None:
    """Emit the TreeEnsemble that replaces the node, with its scores under `name`."""
    table = TreeTable(forest, pads_with_zero=aggregate in (SUM, AVERAGE))
    trees = len(forest.trees)
    # A tree that is written several times would count several times in an average: sum, then divide by the
    # original number.
    uses_div = aggregate == AVERAGE and len(table.roots) != trees
    attributes = {
        **table.attributes(),
        "n_targets": forest.targets,
        "aggregate_function": SUM if uses_div else aggregate,
        "post_transform": transform,
    }
    data = node.inputs[0]
    if out.element_type(data) != forest.element_type:
        data = cast(data, "", out, to=forest.element_type)
    total = out.fresh("total") if uses_div else name
    out.become(node, op_type="TreeEnsemble", inputs=[data], outputs=[total], attributes=attributes)
    if uses_div:
        emit("Div", [total, out.constant(float(trees), forest.element_type)], out, name)


def in_turn(name: str, stages: list[Stage], result: str, out: Rewriter) -> None:
    """Apply stages to a value in order; the last one produces `result`."""
    for position, stage in enumerate(stages, start=1):
        output = result if position == len(stages) else out.fresh("scores")
        stage(name, output, out)
        name = output


def base_stage(base: tuple[float, ...], element_type: str) -> list[Stage]:
    """Return the stage that adds base values, or none if all are zero."""

    def add(name: str, result: str, out: Rewriter) -> None:
        emit("Add", [name, out.constant(base, element_type)], out, result)

    return [add] if any(base) else []


def last_stages(transform: bytes, targets: int, element_type: str) -> list[Stage]:
    """Return the stages that apply the transform and cast to float, the type of all results."""
    to_float: list[Stage] = [cast] if element_type == "double" else []
    if transform == b"NONE":
        return to_float
    if transform in _TRANSFORM_OPERATORS:
        return [partial(_emit_operator, transform), *to_float]
    return [*to_float, partial(_emit_regressor, transform, targets)]


def transform_of(node: Node) -> bytes:
    """Return the `post_transform` of a node.

    Raises:
        CannotConvert: the transform is unknown.
    """
    transform: bytes = node.attribute("post_transform", b"NONE")
    if transform not in TRANSFORMS:
        raise CannotConvert(f"unknown post_transform {transform.decode(errors='replace')!r}")
    return transform


def cast(name: str, result: str, out: Rewriter, to: str = "float") -> str:
    """Emit a Cast at opset 9."""
    return emit("Cast", [name], out, result, to=BY_NAME[to].number)


_TRANSFORM_OPERATORS = MappingProxyType({b"SOFTMAX": ("Softmax", {"axis": 1}), b"LOGISTIC": ("Sigmoid", {})})


def _emit_operator(transform: bytes, name: str, result: str, out: Rewriter) -> None:
    op_type, attributes = _TRANSFORM_OPERATORS[transform]
    emit(op_type, [name], out, result, **attributes)


def _emit_regressor(transform: bytes, targets: int, name: str, result: str, out: Rewriter) -> None:
    """Apply a transform without an operator in ai.onnx by a LinearRegressor with an identity matrix."""
    identity = [float(row == column) for row in range(targets) for column in range(targets)]
    attributes: dict[str, Any] = {"coefficients": identity, "targets": targets, "post_transform": transform}
    out.emit("LinearRegressor", [name], [result], **attributes)

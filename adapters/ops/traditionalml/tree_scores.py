"""Scores of trees: TreeEnsemble sums the votes, further nodes add base values and apply the transform.

TreeEnsemble has `post_transform`, too, but base values precede it, and onnxruntime swaps its numbers for
SOFTMAX and LOGISTIC. It remains NONE where it would have an effect.
"""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor
from opshift.adapters.core.rewriter import Attributes
from opshift.adapters.ops.traditionalml.forest import Forest, Vote
from opshift.model.element_types import BY_NAME

AVERAGE, SUM = 0, 1

AGGREGATES = MappingProxyType({b"AVERAGE": AVERAGE, b"SUM": SUM, b"MIN": 2, b"MAX": 3})

TRANSFORMS = MappingProxyType({b"NONE": 0, b"SOFTMAX": 1, b"LOGISTIC": 2, b"SOFTMAX_ZERO": 3, b"PROBIT": 4})
"""Numbers of aggregates and transforms in TreeEnsemble."""


class Stage(NamedTuple):
    """A node that computes scores from scores and, unless it is empty, a constant."""

    op_type: str
    attributes: Attributes = {}
    constant: tuple[float, ...] = ()


def emit_ai_onnx(op_type: str, inputs: list[str], out: Rewriter, result: str = "", **attributes: Any) -> str:
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
        data = out.cast(data, forest.element_type, opset=9)
    total = out.fresh("total") if uses_div else name
    out.replace(node, op_type="TreeEnsemble", inputs=[data], outputs=[total], attributes=attributes)
    if uses_div:
        emit_ai_onnx("Div", [total, out.constant(float(trees), forest.element_type)], out, name)


class TreeTable:
    """Trees of a forest; a tree is written once for each vote of its leaf with the most votes.

    Copy 0 has the first vote of each leaf. In further copies, a leaf with fewer votes has a vote of 0
    (`pads_with_zero`, for sums) or repeats its first vote, which changes no minimum or maximum.
    """

    def __init__(self, forest: Forest, pads_with_zero: bool) -> None:
        self._forest = forest
        self._pads_with_zero = pads_with_zero
        self.roots: list[int] = []
        self._branches: list[int] = []
        self._leaves: list[Vote] = []
        self._ids: tuple[list[int], list[int]] = ([], [])
        self._are_leaves: tuple[list[int], list[int]] = ([], [])
        for tree in forest.trees:
            for copy in range(max(map(len, forest.leaves(tree)))):
                self._add_tree(tree[0], copy)

    def attributes(self) -> Attributes:
        """Return the attributes of TreeEnsemble that describe its trees."""
        forest, branches = self._forest, self._branches
        element_type = forest.element_type
        tracks = [forest.tracks[position] for position in branches] if forest.tracks else None
        return {
            "tree_roots": self.roots,
            "nodes_featureids": [forest.features[position] for position in branches],
            "nodes_modes": _tensor("uint8", [forest.modes[position] for position in branches]),
            "nodes_splits": _tensor(element_type, [forest.splits[position] for position in branches]),
            "nodes_truenodeids": self._ids[0],
            "nodes_falsenodeids": self._ids[1],
            "nodes_trueleafs": self._are_leaves[0],
            "nodes_falseleafs": self._are_leaves[1],
            **({"nodes_missing_value_tracks_true": tracks} if tracks else {}),
            "leaf_targetids": [vote.target for vote in self._leaves],
            "leaf_weights": _tensor(element_type, [vote.weight for vote in self._leaves]),
        }

    def _add_tree(self, root: int, copy: int) -> None:
        children = self._forest.children
        self.roots.append(len(self._branches))
        pending = [(root, -1, 0)]
        if not children[root]:
            # A single leaf is written as a branch with that leaf on both sides, once for each side: runtimes
            # read a different leaf if both sides refer to one.
            branch = self._add_branch(root)
            pending = [(root, branch, 1), (root, branch, 0)]
        while pending:
            position, parent, side = pending.pop()
            is_leaf = not children[position]
            index = self._add_leaf(position, copy) if is_leaf else self._add_branch(position)
            if parent >= 0:
                self._ids[side][parent] = index
                self._are_leaves[side][parent] = int(is_leaf)
            if not is_leaf:
                true, false = ((child, index, side) for side, child in enumerate(children[position]))
                # Branches first: older onnxruntime treats a root with equal indices on both sides as a leaf.
                pending += [false, true] if children[true[0]] else [true, false]

    def _add_branch(self, position: int) -> int:
        self._branches.append(position)
        for column in (*self._ids, *self._are_leaves):
            column.append(0)
        return len(self._branches) - 1

    def _add_leaf(self, position: int, copy: int) -> int:
        votes = self._forest.votes[position]
        padding = Vote(votes[0].target, 0.0) if self._pads_with_zero else votes[0]
        self._leaves.append(votes[copy] if copy < len(votes) else padding)
        return len(self._leaves) - 1


def _tensor(element_type: str, values: Sequence[float]) -> Tensor:
    return Tensor(element_type, (len(values),), tuple(values))


def apply_stages(name: str, stages: list[Stage], element_type: str, result: str, out: Rewriter) -> None:
    """Apply stages to a value in order; the last one produces `result`."""
    for position, stage in enumerate(stages, start=1):
        output = result if position == len(stages) else out.fresh("scores")
        inputs = [name, *([out.constant(stage.constant, element_type)] if stage.constant else [])]
        if stage.op_type == "LinearRegressor":
            out.emit(stage.op_type, inputs, [output], **stage.attributes)
        else:
            emit_ai_onnx(stage.op_type, inputs, out, output, **stage.attributes)
        name = output


def base_value_stages(base: tuple[float, ...]) -> list[Stage]:
    """Return the stage that adds base values, or none if all are zero."""
    return [Stage("Add", constant=base)] if any(base) else []


def final_stages(transform: bytes, targets: int, element_type: str, out: Rewriter) -> list[Stage]:
    """Return the stages that apply the transform and cast to float, the type of all results."""
    to_float = [Stage("Cast", {"to": BY_NAME["float"].number})] if element_type == "double" else []
    if transform == b"NONE":
        return to_float
    if transform in _TRANSFORM_STAGES:
        return [_TRANSFORM_STAGES[transform], *to_float]
    # Without an operator in ai.onnx, a LinearRegressor with an identity matrix applies the transform.
    out.require_elements(targets, targets)
    identity = [float(row == column) for row in range(targets) for column in range(targets)]
    attributes = {"coefficients": identity, "targets": targets, "post_transform": transform}
    return [*to_float, Stage("LinearRegressor", attributes)]


_TRANSFORM_STAGES = {b"SOFTMAX": Stage("Softmax", {"axis": 1}), b"LOGISTIC": Stage("Sigmoid")}


def read_transform(node: Node) -> bytes:
    """Return the `post_transform` of a node; refuse if the transform is unknown."""
    transform: bytes = node.attribute("post_transform", b"NONE")
    if transform not in TRANSFORMS:
        raise CannotConvert(f"unknown post_transform {transform.decode(errors='replace')!r}", "node.invalid")
    return transform

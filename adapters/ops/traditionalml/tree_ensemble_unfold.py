"""TreeEnsemble as TreeEnsembleRegressor: one list of branches and leaves, by tree and node id."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor, adapter
from opshift.adapters.core.rewriter import Attributes
from opshift.adapters.emit.expression import cast
from opshift.adapters.ops.traditionalml.trees import AGGREGATES, LEAF, MODES, TRANSFORMS
from opshift.model.tensors import require_tensor

MEMBER_MODE = 6
"""Number of BRANCH_MEMBER in `nodes_modes`."""

MODE_NAMES = {number: name for name, number in MODES.items() if name != LEAF}
"""Names of the comparisons by number."""

ERROR = (
    "at most (n + 1) 2^-24 of the sum of the magnitudes of the leaves that n trees select, and 1 unit in the "
    "last place of float16"
)

MAX_NODES = 1 << 20
"""Limit of listed nodes: a node with two parents is listed twice, so trees can grow exponentially."""


class _Entry(NamedTuple):
    """A row of the node list: ids, comparison and children of a branch; a leaf has the defaults."""

    tree: int
    node_id: int
    mode: bytes = LEAF
    feature: int = 0
    split: float = 0.0
    track: int = 0
    children: tuple[int, int] = (0, 0)


@adapter("TreeEnsemble", 5, 4, domain="ai.onnx.ml", error=ERROR)
def convert_to_regressor(node: Node, out: Rewriter) -> None:
    """Convert to TreeEnsembleRegressor; a set of members becomes a chain of comparisons."""
    element_type = out.element_type(node.inputs[0])
    transform = _name_of(TRANSFORMS, node.attribute("post_transform", 0))
    if transform in (b"SOFTMAX", b"LOGISTIC"):
        reason = f"post_transform {transform.decode()} is ambiguous: onnxruntime swaps SOFTMAX and LOGISTIC"
        remedy = "apply the transform in a separate node after the trees"
        raise CannotConvert(reason, "result.runtime-dependent", remedy=remedy)
    if element_type != "float":
        reason = f"TreeEnsembleRegressor returns float, which rounds results of type {element_type}"
        out.allow("approximate", reason)
    data = cast(node.inputs[0], "float", out) if element_type == "float16" else node.inputs[0]
    attributes = {
        **_TreeLister(node).attributes(),
        "n_targets": node.attribute("n_targets", 1),
        "aggregate_function": _name_of(AGGREGATES, node.attribute("aggregate_function", 1)),
        "post_transform": transform,
    }
    outputs = node.outputs if element_type == "float" else 1
    scores = out.emit("TreeEnsembleRegressor", [data], outputs, opset=3, **attributes)
    if element_type != "float":
        cast(scores, element_type, out, node.outputs)


def _name_of(names: Mapping[bytes, int], number: int) -> bytes:
    return next(name for name, candidate in names.items() if candidate == number)


class _TreeLister:
    """The nodes of all trees, listed from the roots."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._modes = require_tensor(node.attribute("nodes_modes")).values
        self._splits = require_tensor(node.attribute("nodes_splits"))
        self._weights = require_tensor(node.attribute("leaf_weights"))
        self._tracks = node.attribute("nodes_missing_value_tracks_true", ()) or (0,) * len(self._modes)
        self._member_sets = _member_sets(node, self._modes)
        # A path without a cycle visits each branch and each member of a set at most once.
        self._max_depth = len(self._modes) + sum(map(len, self._member_sets.values()))
        self._entries: list[_Entry] = []
        self._votes: list[tuple[int, int, int]] = []
        for tree, root in enumerate(node.attribute("tree_roots")):
            self._list_tree(tree, root)

    def attributes(self) -> Attributes:
        """Return the attributes of TreeEnsembleRegressor that describe the trees."""
        entries, votes = self._entries, self._votes
        targets = self._node.attribute("leaf_targetids")
        weights = [self._weights.values[leaf] for _, _, leaf in votes]
        splits = [each.split for each in entries]
        is_double = "double" in (self._splits.element_type, self._weights.element_type)
        return {
            "nodes_treeids": [each.tree for each in entries],
            "nodes_nodeids": [each.node_id for each in entries],
            "nodes_modes": [each.mode for each in entries],
            "nodes_featureids": [each.feature for each in entries],
            "nodes_truenodeids": [each.children[0] for each in entries],
            "nodes_falsenodeids": [each.children[1] for each in entries],
            "nodes_missing_value_tracks_true": [each.track for each in entries],
            "target_treeids": [tree for tree, _, _ in votes],
            "target_nodeids": [node_id for _, node_id, _ in votes],
            "target_ids": [targets[leaf] for _, _, leaf in votes],
            **_numbers("nodes_values", splits, is_double),
            **_numbers("target_weights", weights, is_double),
        }

    def _list_tree(self, tree: int, root: int) -> None:
        """List a tree from its root.

        Pending positions have a depth, an index among branches or leaves, whether it is a leaf, and the
        member of its set to compare with.
        """
        start = len(self._entries)
        # Entries start as leaves; visiting a branch replaces its entry.
        self._entries.append(_Entry(tree, 0))
        pending = [(start, 0, root, False, 0)]
        while pending:
            position, depth, index, is_leaf, member = pending.pop()
            if depth > self._max_depth or len(self._entries) > MAX_NODES:
                reason = f"the trees have more than {MAX_NODES} nodes or contain a cycle"
                raise CannotConvert(reason, "limit.exceeded")
            if is_leaf:
                self._votes.append((tree, position - start, index))
                continue
            sides = self._children_of(index, member)
            children = tuple(len(self._entries) + side for side in (0, 1))
            self._entries[position] = self._branch(tree, position - start, index, member, children[0] - start)
            self._entries += [_Entry(tree, child - start) for child in children]
            pending += [(child, depth + 1, *side) for child, side in zip(children, sides, strict=True)]

    def _children_of(self, index: int, member: int) -> list[tuple[int, bool, int]]:
        """Return the true and the false child of a branch; a set compares its members one after another."""
        sides = [
            (self._column(f"nodes_{side}nodeids")[index], bool(self._column(f"nodes_{side}leafs")[index]), 0)
            for side in ("true", "false")
        ]
        if self._modes[index] == MEMBER_MODE and member + 1 < len(self._member_sets[index]):
            return [sides[0], (index, False, member + 1)]
        return sides

    def _branch(self, tree: int, node_id: int, index: int, member: int, child: int) -> _Entry:
        is_set = self._modes[index] == MEMBER_MODE
        split = self._member_sets[index][member] if is_set else self._splits.values[index]
        mode = b"BRANCH_EQ" if is_set else MODE_NAMES[self._modes[index]]
        feature = self._column("nodes_featureids")[index]
        return _Entry(tree, node_id, mode, feature, split, self._tracks[index], (child, child + 1))

    def _column(self, name: str) -> Sequence[int]:
        column: Sequence[int] = self._node.attribute(name)
        return column


def _member_sets(node: Node, modes: Sequence[int]) -> dict[int, list[float]]:
    """Return the members of the set of each BRANCH_MEMBER node; NaN separates two sets."""
    positions = [position for position, mode in enumerate(modes) if mode == MEMBER_MODE]
    if not positions:
        return {}
    sets: list[list[float]] = [[]]
    for value in require_tensor(node.attribute("membership_values")).values:
        if math.isnan(value):
            sets.append([])
        else:
            sets[-1].append(value)
    found = dict(zip(positions, sets, strict=False))
    if len(found) < len(positions) or not all(found.values()):
        raise CannotConvert("a BRANCH_MEMBER node has no members in membership_values", "node.invalid")
    return found


def _numbers(name: str, values: list[float], is_double: bool) -> Attributes:
    if is_double:
        return {f"{name}_as_tensor": Tensor("double", (len(values),), tuple(values))}
    return {name: values}

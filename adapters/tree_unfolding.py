"""TreeEnsemble, back: one list of nodes, each by its tree and number, for TreeEnsembleRegressor."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from opshift.adapters.casts import cast
from opshift.adapters.node import Node, Tensor
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.adapters.tensor_messages import tensor_of
from opshift.adapters.tree_scores import AGGREGATES, TRANSFORMS
from opshift.adapters.tree_structure import LEAF, MODES

MEMBER = 6
NAMES = {number: name for name, number in MODES.items() if name != LEAF}
MOST = 1 << 20
"""The most nodes that are written out; a node that two others name is written twice."""


@adapter("TreeEnsemble", 5, 4, domain="ai.onnx.ml")
def nodes_and_leaves_share_a_list(node: Node, out: Rewriter) -> None:
    """The trees as TreeEnsembleRegressor lists them; a set of members becomes a chain of comparisons."""
    element_type = out.element_type(node.inputs[0])
    transform = _name(TRANSFORMS, node.attribute("post_transform", 0))
    if transform in (b"SOFTMAX", b"LOGISTIC"):
        raise CannotConvert(
            f"post_transform {transform.decode()}: onnxruntime takes its number for that of the other",
            remedy="apply the transform behind the trees",
        )
    if element_type != "float":
        reason = f"TreeEnsembleRegressor gives its results in single precision, not in {element_type}"
        out.concede("approximate", reason)
    data = cast(node.inputs[0], "float", out) if element_type == "float16" else node.inputs[0]
    attributes = {
        **_Unfolding(node).attributes(),
        "n_targets": node.attribute("n_targets", 1),
        "aggregate_function": _name(AGGREGATES, node.attribute("aggregate_function", 1)),
        "post_transform": transform,
    }
    outputs = node.outputs if element_type == "float" else 1
    scores = out.emit("TreeEnsembleRegressor", [data], outputs, opset=3, **attributes)
    if element_type != "float":
        cast(scores, element_type, out, node.outputs)


class _Entry(NamedTuple):
    """A node: its tree, its number, what it compares, and its children; or a leaf."""

    tree: int
    number: int
    mode: bytes = LEAF
    feature: int = 0
    split: float = 0.0
    track: int = 0
    children: tuple[int, int] = (0, 0)


class _Unfolding:
    """The nodes of all trees, walked from the roots."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._modes = tensor_of(node.attribute("nodes_modes")).values
        self._splits = tensor_of(node.attribute("nodes_splits"))
        self._weights = tensor_of(node.attribute("leaf_weights"))
        self._tracks = node.attribute("nodes_missing_value_tracks_true", ()) or (0,) * len(self._modes)
        self._members = _members(node, self._modes)
        self._longest = len(self._modes) + sum(map(len, self._members.values()))
        self._entries: list[_Entry] = []
        self._votes: list[tuple[int, int, int]] = []
        for tree, root in enumerate(node.attribute("tree_roots")):
            self._walk(tree, root)

    def attributes(self) -> dict[str, Any]:
        """What TreeEnsembleRegressor states of the trees."""
        entries, votes = self._entries, self._votes
        targets = self._node.attribute("leaf_targetids")
        weights = [self._weights.values[leaf] for _, _, leaf in votes]
        found = {
            "nodes_treeids": [each.tree for each in entries],
            "nodes_nodeids": [each.number for each in entries],
            "nodes_modes": [each.mode for each in entries],
            "nodes_featureids": [each.feature for each in entries],
            "nodes_truenodeids": [each.children[0] for each in entries],
            "nodes_falsenodeids": [each.children[1] for each in entries],
            "nodes_missing_value_tracks_true": [each.track for each in entries],
            "target_treeids": [tree for tree, _, _ in votes],
            "target_nodeids": [number for _, number, _ in votes],
            "target_ids": [targets[leaf] for _, _, leaf in votes],
        }
        splits = [each.split for each in entries]
        doubles = "double" in (self._splits.element_type, self._weights.element_type)
        return (
            found | _numbers("nodes_values", splits, doubles) | _numbers("target_weights", weights, doubles)
        )

    def _walk(self, tree: int, root: int) -> None:
        """List a tree from its root; a place to go to is a node, or a leaf, and a member of its set."""
        start = len(self._entries)
        self._entries.append(_Entry(tree, 0))
        waiting = [(start, 0, root, False, 0)]
        while waiting:
            at, depth, place, is_leaf, member = waiting.pop()
            if depth > self._longest or len(self._entries) > MOST:
                raise CannotConvert(f"its trees have more than {MOST} nodes, or run in a circle")
            if is_leaf:
                self._votes.append((tree, at - start, place))
                continue
            sides = self._sides(place, member)
            children = tuple(len(self._entries) + side for side in (0, 1))
            self._entries[at] = self._branch(tree, at - start, place, member, children[0] - start)
            self._entries += [_Entry(tree, child - start) for child in children]
            waiting += [(child, depth + 1, *side) for child, side in zip(children, sides, strict=True)]

    def _sides(self, place: int, member: int) -> list[tuple[int, bool, int]]:
        """Where a node's true side and false side lead; a set is tried member by member."""
        sides = [
            (self._stated(f"nodes_{side}nodeids")[place], bool(self._stated(f"nodes_{side}leafs")[place]), 0)
            for side in ("true", "false")
        ]
        if self._modes[place] == MEMBER and member + 1 < len(self._members[place]):
            return [sides[0], (place, False, member + 1)]
        return sides

    def _branch(self, tree: int, number: int, place: int, member: int, child: int) -> _Entry:
        is_set = self._modes[place] == MEMBER
        split = self._members[place][member] if is_set else self._splits.values[place]
        mode = b"BRANCH_EQ" if is_set else NAMES[self._modes[place]]
        feature = self._stated("nodes_featureids")[place]
        return _Entry(tree, number, mode, feature, split, self._tracks[place], (child, child + 1))

    def _stated(self, name: str) -> Sequence[int]:
        stated: Sequence[int] = self._node.attribute(name)
        return stated


def _members(node: Node, modes: Sequence[int]) -> dict[int, list[float]]:
    """The members of each node's set; NaN stands between two sets."""
    places = [place for place, mode in enumerate(modes) if mode == MEMBER]
    if not places:
        return {}
    sets: list[list[float]] = [[]]
    for value in tensor_of(node.attribute("membership_values")).values:
        if math.isnan(value):
            sets.append([])
        else:
            sets[-1].append(value)
    found = dict(zip(places, sets, strict=False))
    if len(found) < len(places) or not all(found.values()):
        raise CannotConvert("a set that a node tests for has no members")
    return found


def _numbers(name: str, values: list[float], doubles: bool) -> dict[str, Any]:
    if doubles:
        return {f"{name}_as_tensor": Tensor("double", (len(values),), tuple(values))}
    return {name: values}


def _name(names: Mapping[bytes, int], number: int) -> bytes:
    return next(name for name, each in names.items() if each == number)

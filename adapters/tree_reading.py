"""Trees out of the attributes of TreeEnsembleRegressor and TreeEnsembleClassifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from opshift.adapters.node import Node, Tensor
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.tensors import read_tensor
from opshift.adapters.tree_structure import LEAF, MODES, Forest, Vote
from opshift.registry.element_types import BY_NUMBER

Number = TypeVar("Number", int, float)


def read_forest(node: Node, kind: str, targets: int, out: Rewriter) -> Forest:
    """The trees of a node whose votes are in its `kind`_* attributes, for `targets` targets.

    Raises:
        CannotConvert: they are no trees, or a leaf has no vote.
    """
    names = ("nodes_values", f"{kind}_weights", "base_values")
    splits, weights, base = (_numbers(node, name) for name in names)
    nodes = _Nodes(node, len(splits.values))
    types = {out.element_type(node.inputs[0]), *(each.element_type for each in (splits, weights, base))}
    return Forest(
        element_type="double" if "double" in types else "float",
        targets=targets,
        base=base.values,
        modes=nodes.modes,
        features=_at_branches(node.attribute("nodes_featureids"), 0, nodes),
        splits=_at_branches(splits.values, 0.0, nodes),
        tracks=nodes.tracks,
        children=nodes.children,
        votes=_votes(node, kind, targets, weights.values, nodes),
        trees=nodes.trees,
    )


def _numbers(node: Node, name: str) -> Tensor:
    """Numbers that are a list of floats or, under the same name `_as_tensor`, a tensor of any precision."""
    listed = node.attribute(name, ())
    message = node.attribute(f"{name}_as_tensor")
    if message is None:
        return Tensor("float", (len(listed),), tuple(listed))
    kind = BY_NUMBER.get(message.data_type)
    if listed or kind is None or kind.name not in ("float", "double"):
        raise CannotConvert(f"{name}_as_tensor is neither float nor double, or stands beside {name}")
    found = read_tensor(message)
    if found is None:
        raise CannotConvert(f"{name}_as_tensor does not hold its values")
    return Tensor(found.element_type, (len(found.values),), found.values)


@dataclass(frozen=True)
class _Nodes:
    """The nodes_* lists, of `count` entries each."""

    node: Node
    count: int

    def __post_init__(self) -> None:
        for name in ("treeids", "nodeids", "featureids", "modes", "truenodeids", "falsenodeids"):
            _require_length(self.node, f"nodes_{name}", self.count)
        if not self.count:
            raise CannotConvert("it has no trees")

    @cached_property
    def places(self) -> dict[tuple[int, int], int]:
        """Tree and node id to the place in the lists."""
        trees, numbers = self.node.attribute("nodes_treeids"), self.node.attribute("nodes_nodeids")
        found = {each: place for place, each in enumerate(zip(trees, numbers, strict=True))}
        if len(found) < self.count:
            raise CannotConvert("two nodes of one tree have the same id")
        return found

    @cached_property
    def modes(self) -> list[int]:
        """The comparison of every node, by number."""
        stated = self.node.attribute("nodes_modes")
        unknown = next((mode for mode in stated if mode not in MODES), None)
        if unknown is not None:
            raise CannotConvert(f"{unknown.decode(errors='replace')!r} is no mode of a node")
        return [MODES[mode] for mode in stated]

    @cached_property
    def children(self) -> list[tuple[int, ...]]:
        """The places of every node's children."""
        found: list[tuple[int, ...]] = []
        modes, places = self.node.attribute("nodes_modes"), self.places
        sides = zip(*(self.node.attribute(f"nodes_{side}nodeids") for side in ("true", "false")), strict=True)
        for (tree, number), mode, pair in zip(places, modes, sides, strict=True):
            missing = next((child for child in pair if mode != LEAF and (tree, child) not in places), None)
            if missing is not None:
                raise CannotConvert(f"node {number} of tree {tree} names node {missing}, which is not there")
            found.append(() if mode == LEAF else tuple(places[tree, child] for child in pair))
        return found

    @cached_property
    def tracks(self) -> list[int]:
        """Which nodes send NaN to the true side; empty if none does."""
        stated = self.node.attribute("nodes_missing_value_tracks_true", ())
        if not any(stated):
            return []
        return [int(track == 1) for track in stated[: self.count]] + [0] * (self.count - len(stated))

    @cached_property
    def trees(self) -> list[list[int]]:
        """Each tree's nodes from its first, which is the root."""
        roots: dict[int, int] = {}
        sizes: dict[int, int] = {}
        for (tree, _), place in self.places.items():
            roots.setdefault(tree, place)
            sizes[tree] = sizes.get(tree, 0) + 1
        found = []
        for tree, root in roots.items():
            reached = [root]
            for place in reached:
                reached += self.children[place] if len(reached) <= sizes[tree] else ()
            if len(reached) != sizes[tree]:
                raise CannotConvert(f"the nodes of tree {tree} form no tree whose root is the first of them")
            found.append(reached)
        return found


def _votes(node: Node, kind: str, targets: int, weights: Sequence[float], nodes: _Nodes) -> list[list[Vote]]:
    """The votes of every node; those that stand at an inner node count for nothing."""
    found: list[list[Vote]] = [[] for _ in range(nodes.count)]
    names = [f"{kind}_{name}" for name in ("treeids", "nodeids", "ids")]
    for name in names:
        _require_length(node, name, len(weights))
    columns = [node.attribute(name, ()) for name in names]
    for tree, number, target, weight in zip(*columns, weights, strict=True):
        place = nodes.places.get((tree, number))
        if place is None or not 0 <= target < targets:
            raise CannotConvert(
                f"a weight is for {kind} {target} at node {number} of tree {tree}: one is not there"
            )
        if not nodes.children[place]:
            found[place].append(Vote(target, weight))
    for (tree, number), sides, votes in zip(nodes.places, nodes.children, found, strict=True):
        if not sides and not votes:
            raise CannotConvert(f"leaf {number} of tree {tree} has no weight", remedy="give it a weight of 0")
    return found


def _at_branches(column: Sequence[Number], otherwise: Number, nodes: _Nodes) -> list[Number]:
    """A column without what it says of leaves."""
    return [value if sides else otherwise for value, sides in zip(column, nodes.children, strict=True)]


def _require_length(node: Node, name: str, count: int) -> None:
    length = len(node.attribute(name, ()))
    if length != count:
        raise CannotConvert(f"{name} has {length} entries where the list beside it has {count}")

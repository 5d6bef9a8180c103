"""Reader of trees in the attributes of TreeEnsembleRegressor and TreeEnsembleClassifier."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, TypeVar

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor
from opshift.model.element_types import BY_NUMBER
from opshift.model.frozen_record import FrozenRecord
from opshift.model.tensors import read_tensor

Number = TypeVar("Number", int, float)

LEAF = b"LEAF"

MODES = {
    b"BRANCH_LEQ": 0, b"BRANCH_LT": 1, b"BRANCH_GTE": 2, b"BRANCH_GT": 3, b"BRANCH_EQ": 4, b"BRANCH_NEQ": 5,
    LEAF: 0,
}  # fmt: skip
"""Numbers of the comparisons. A leaf that is a whole tree may have any, because both sides are equal."""


class _Nodes(FrozenRecord):
    """The attributes nodes_*, validated to be lists of `count` entries each."""

    node: Node
    count: int

    def __post_init__(self) -> None:
        for name in ("treeids", "nodeids", "featureids", "modes", "truenodeids", "falsenodeids"):
            _require_length(self.node, f"nodes_{name}", self.count)
        if not self.count:
            raise CannotConvert("the node has no trees", "node.invalid")

    @cached_property
    def positions(self) -> dict[tuple[int, int], int]:
        """Position of each node in the lists, by tree id and node id."""
        trees, node_ids = self.node.attribute("nodes_treeids"), self.node.attribute("nodes_nodeids")
        found = {each: position for position, each in enumerate(zip(trees, node_ids, strict=True))}
        if len(found) < self.count:
            raise CannotConvert("two nodes of one tree have the same id", "node.invalid")
        return found

    @cached_property
    def modes(self) -> list[int]:
        """Number of the comparison of each node."""
        values = self.node.attribute("nodes_modes")
        unknown = next((mode for mode in values if mode not in MODES), None)
        if unknown is not None:
            reason = f"unknown mode {unknown.decode(errors='replace')!r} in nodes_modes"
            raise CannotConvert(reason, "node.invalid")
        return [MODES[mode] for mode in values]

    @cached_property
    def children(self) -> list[tuple[int, ...]]:
        """Positions of the children of each node."""
        found: list[tuple[int, ...]] = []
        modes, positions = self.node.attribute("nodes_modes"), self.positions
        sides = zip(*(self.node.attribute(f"nodes_{side}nodeids") for side in ("true", "false")), strict=True)
        for (tree, node_id), mode, sides_of_node in zip(positions, modes, sides, strict=True):
            children = () if mode == LEAF else sides_of_node
            missing = next((child for child in children if (tree, child) not in positions), None)
            if missing is not None:
                reason = f"node {node_id} of tree {tree} refers to node {missing}, which does not exist"
                raise CannotConvert(reason, "node.invalid")
            found.append(tuple(positions[tree, child] for child in children))
        return found

    @cached_property
    def tracks(self) -> list[int]:
        """Flags of the nodes that send NaN to the true side; empty if no node does."""
        values = self.node.attribute("nodes_missing_value_tracks_true", ())
        if not any(values):
            return []
        # The list may be shorter than the others; missing flags are 0.
        return [int(track == 1) for track in values[: self.count]] + [0] * (self.count - len(values))

    @cached_property
    def trees(self) -> list[list[int]]:
        """Positions of the nodes of each tree; the first one is the root."""
        roots: dict[int, int] = {}
        for (tree, _), position in self.positions.items():
            roots.setdefault(tree, position)
        sizes = Counter(tree for tree, _ in self.positions)
        found = []
        for tree, root in roots.items():
            reached = [root]
            for position in reached:
                # More nodes than the tree has mean a cycle or a shared child: stop, and refuse below.
                reached += self.children[position] if len(reached) <= sizes[tree] else ()
            if len(reached) != sizes[tree]:
                reason = f"the nodes of tree {tree} do not form a tree with the first node as root"
                raise CannotConvert(reason, "node.invalid")
            found.append(reached)
        return found


class Vote(NamedTuple):
    """The weight that a leaf adds to one target."""

    target: int
    weight: float


class Forest(FrozenRecord):
    """Columns with an entry for each node. Children are positions in the columns; a leaf has none."""

    element_type: str
    """`double` if the input or any number is double, else `float`."""
    targets: int
    base: tuple[float, ...]
    """Base value of each target; empty if the node has none."""
    modes: Sequence[int]
    features: Sequence[int]
    splits: Sequence[float]
    tracks: Sequence[int]
    """1 where NaN goes to the true side; empty if it never does."""
    children: Sequence[tuple[int, ...]]
    """The child on the true side and the one on the false side."""
    votes: Sequence[list[Vote]]
    trees: Sequence[list[int]]
    """Positions of the nodes of each tree, the root first."""

    def leaves(self, tree: list[int]) -> Iterator[list[Vote]]:
        """Yield the votes of each leaf of a tree."""
        return (self.votes[position] for position in tree if not self.children[position])

    def all_votes(self) -> Iterator[Vote]:
        """Yield the votes of all leaves."""
        return (vote for tree in self.trees for leaf in self.leaves(tree) for vote in leaf)

    def guaranteed_targets(self) -> set[int]:
        """Return the targets that have a vote in every row."""
        found: set[int] = set()
        for tree in self.trees:
            found |= set.intersection(*({vote.target for vote in leaf} for leaf in self.leaves(tree)))
        return found


def read_forest(node: Node, kind: str, targets: int, out: Rewriter) -> Forest:
    """Read and validate the trees of a node; `kind` is the prefix of its votes, `target` or `class`.

    Raises:
        CannotConvert: the nodes do not form trees, or a leaf has no vote.
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
        features=_branch_values(node.attribute("nodes_featureids"), 0, nodes),
        splits=_branch_values(splits.values, 0.0, nodes),
        tracks=nodes.tracks,
        children=nodes.children,
        votes=_votes(node, kind, targets, weights.values, nodes),
        trees=nodes.trees,
    )


def _numbers(node: Node, name: str) -> Tensor:
    """Return numbers from a list of floats, or from the attribute `<name>_as_tensor` of any precision."""
    values = node.attribute(name, ())
    tensor = node.attribute(f"{name}_as_tensor")
    if tensor is None:
        return Tensor("float", (len(values),), tuple(values))
    element_type = BY_NUMBER.get(tensor.data_type)
    if values or element_type is None or element_type.name not in ("float", "double"):
        reason = f"{name}_as_tensor is neither float nor double, or is set in addition to {name}"
        raise CannotConvert(reason, "node.invalid")
    contents = read_tensor(tensor)
    if contents is None:
        raise CannotConvert(f"{name}_as_tensor does not contain its values", "tensor.unreadable")
    return Tensor(contents.element_type, (len(contents.values),), contents.values)


def _branch_values(column: Sequence[Number], default: Number, nodes: _Nodes) -> list[Number]:
    """Return a column with the entries of leaves replaced by a default."""
    return [value if sides else default for value, sides in zip(column, nodes.children, strict=True)]


def _votes(node: Node, kind: str, targets: int, weights: Sequence[float], nodes: _Nodes) -> list[list[Vote]]:
    """Return the votes of each node; votes at branches are ignored."""
    found: list[list[Vote]] = [[] for _ in range(nodes.count)]
    names = [f"{kind}_{name}" for name in ("treeids", "nodeids", "ids")]
    for name in names:
        _require_length(node, name, len(weights))
    columns = [node.attribute(name, ()) for name in names]
    for tree, node_id, target, weight in zip(*columns, weights, strict=True):
        position = nodes.positions.get((tree, node_id))
        if position is None or not 0 <= target < targets:
            raise CannotConvert(
                f"a weight refers to {kind} {target} at node {node_id} of tree {tree}, "
                "but one of them does not exist",
                "node.invalid",
            )
        if not nodes.children[position]:
            found[position].append(Vote(target, weight))
    for (tree, node_id), sides, votes in zip(nodes.positions, nodes.children, found, strict=True):
        if not sides and not votes:
            reason = f"leaf {node_id} of tree {tree} has no weight"
            raise CannotConvert(reason, "node.invalid", remedy="add a weight of 0")
    return found


def _require_length(node: Node, name: str, count: int) -> None:
    length = len(node.attribute(name, ()))
    if length != count:
        reason = f"{name} has {length} entries, expected {count} as in the related lists"
        raise CannotConvert(reason, "node.invalid")

"""Trees of TreeEnsembleRegressor and TreeEnsembleClassifier: read the attributes, and emit the scores.

TreeEnsemble sums the weights of leaves ("votes"). Separate nodes add the base values, and then apply the
transform: onnxruntime swaps the numbers of SOFTMAX and LOGISTIC in `post_transform` of TreeEnsemble. Only a
transform that onnxruntime ignores, for a single target, becomes `post_transform` of TreeEnsemble.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor
from opshift.adapters.core.rewriter import Attributes
from opshift.adapters.emit.expression import LARGEST_FINITE
from opshift.model.element_types import BY_NAME, BY_NUMBER
from opshift.model.shared_data import FrozenRecord
from opshift.model.tensors import read_tensor

Number = TypeVar("Number", int, float)

LEAF = b"LEAF"

MODES = {
    b"BRANCH_LEQ": 0, b"BRANCH_LT": 1, b"BRANCH_GTE": 2, b"BRANCH_GT": 3, b"BRANCH_EQ": 4, b"BRANCH_NEQ": 5,
    LEAF: 0,
}  # fmt: skip
"""Comparison numbers in TreeEnsemble. A single leaf becomes a branch with equal sides: any number fits."""


class _TreeNodes(FrozenRecord):
    """Attributes `nodes_*` of a tree ensemble; the required lists are validated to have `count` entries."""

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
        """Number of the comparison of each tree node."""
        values = self.node.attribute("nodes_modes")
        unknown = next((mode for mode in values if mode not in MODES), None)
        if unknown is not None:
            reason = f"unknown mode {unknown.decode(errors='replace')!r} in nodes_modes"
            raise CannotConvert(reason, "node.invalid")
        return [MODES[mode] for mode in values]

    @cached_property
    def children(self) -> list[tuple[int, ...]]:
        """Positions of the children of each tree node, the true side first; empty for a leaf."""
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
        """Flag of each tree node, 1 if NaN goes to the true side; empty if all flags are 0."""
        values = self.node.attribute("nodes_missing_value_tracks_true", ())
        if not any(values):
            return []
        # The list may be shorter than the other lists; missing flags are 0.
        return [int(track == 1) for track in values[: self.count]] + [0] * (self.count - len(values))

    @cached_property
    def trees(self) -> list[list[int]]:
        """Positions of the nodes of each tree, the root first."""
        roots: dict[int, int] = {}
        for (tree, _), position in self.positions.items():
            roots.setdefault(tree, position)
        sizes = Counter(tree for tree, _ in self.positions)
        found = []
        for tree, root in roots.items():
            reached = [root]
            for position in reached:
                # If more nodes are reached than the tree has, there is a cycle or a shared child: stop.
                reached += self.children[position] if len(reached) <= sizes[tree] else ()
            if len(reached) != sizes[tree]:
                reason = f"tree {tree}: the first node is not the root of all its nodes"
                raise CannotConvert(reason, "node.invalid")
            found.append(reached)
        return found


class Vote(NamedTuple):
    """The weight that a leaf adds to one target."""

    target: int
    weight: float


class Forest(FrozenRecord):
    """Trees as columns with an entry for each tree node; a child is a position in the columns."""

    element_type: str
    """`double` if the input or any number is double, else `float`."""
    targets: int
    base: tuple[float, ...]
    """Base value of each target; empty if the node has none."""
    modes: Sequence[int]
    features: Sequence[int]
    splits: Sequence[float]
    tracks: Sequence[int]
    """Flag of each tree node: 1 if NaN goes to the true side; empty if all flags are 0."""
    children: Sequence[tuple[int, ...]]
    """The children on the true and the false side; a leaf has none."""
    votes: Sequence[list[Vote]]
    trees: Sequence[list[int]]
    """Positions of the nodes of each tree, the root first."""

    def leaves(self, tree: list[int]) -> Iterator[list[Vote]]:
        """Yield the votes of each leaf of a tree."""
        return (self.votes[position] for position in tree if not self.children[position])

    def all_votes(self) -> Iterator[Vote]:
        """Yield the votes of all leaves."""
        return (vote for tree in self.trees for leaf in self.leaves(tree) for vote in leaf)

    @property
    def has_finite_scores(self) -> bool:
        """Whether no score, and no partial sum of weights and base values, can overflow in float."""
        # each weight is tested, because `max` may skip NaN
        is_finite = all(math.isfinite(vote.weight) for vote in self.all_votes())
        leaves = (
            (sum(abs(vote.weight) for vote in leaf) for leaf in self.leaves(tree)) for tree in self.trees
        )
        return is_finite and sum(map(max, leaves)) + sum(map(abs, self.base)) <= LARGEST_FINITE["float"]

    def guaranteed_targets(self) -> set[int]:
        """Return the targets that get a vote in every row of the input."""
        found: set[int] = set()
        for tree in self.trees:
            found |= set.intersection(*({vote.target for vote in leaf} for leaf in self.leaves(tree)))
        return found


def read_forest(node: Node, kind: str, targets: int, out: Rewriter) -> Forest:
    """Read and validate the trees of a node; `kind` is `target` or `class`, the prefix of vote attributes.

    Raises:
        CannotConvert: the lists are invalid, the nodes do not form trees, or a leaf has no vote.
    """
    names = ("nodes_values", f"{kind}_weights", "base_values")
    splits, weights, base = (_read_numbers(node, name) for name in names)
    nodes = _TreeNodes(node, len(splits.values))
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
        votes=_votes_of_nodes(node, kind, targets, weights.values, nodes),
        trees=nodes.trees,
    )


def _read_numbers(node: Node, name: str) -> Tensor:
    """Return numbers from the list `name`, or from the float or double tensor `<name>_as_tensor`."""
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


def _branch_values(column: Sequence[Number], default: Number, nodes: _TreeNodes) -> list[Number]:
    """Return a column with the entries of leaves replaced by a default."""
    return [value if sides else default for value, sides in zip(column, nodes.children, strict=True)]


def _votes_of_nodes(
    node: Node, kind: str, targets: int, weights: Sequence[float], nodes: _TreeNodes
) -> list[list[Vote]]:
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


AVERAGE, SUM = 0, 1

AGGREGATES = MappingProxyType({b"AVERAGE": AVERAGE, b"SUM": SUM, b"MIN": 2, b"MAX": 3})

TRANSFORMS = MappingProxyType({b"NONE": 0, b"SOFTMAX": 1, b"LOGISTIC": 2, b"SOFTMAX_ZERO": 3, b"PROBIT": 4})
"""Numbers of the transforms in TreeEnsemble; `AGGREGATES` has the numbers of the aggregate functions."""


class Stage(NamedTuple):
    """Node that transforms scores; `constant`, unless empty, is the second input of the node."""

    op_type: str
    attributes: Attributes = {}
    constant: tuple[float, ...] = ()


def emit_ai_onnx(op_type: str, inputs: list[str], out: Rewriter, result: str = "", **attributes: Any) -> str:
    """Emit a node for opset 9 of ai.onnx, and return its output: `result`, or by default a fresh name."""
    return out.emit(op_type, inputs, [result] if result else 1, domain="", opset=9, **attributes)


def emit_ensemble(
    node: Node, forest: Forest, name: str, out: Rewriter, aggregate: int = SUM, transform: int = 0
) -> None:
    """Replace a node by TreeEnsemble; `name` is the name of the output with the scores."""
    table = TreeTable(forest, pads_with_zero=aggregate in (SUM, AVERAGE))
    trees = len(forest.trees)
    # Copies of a tree would change an average: emit the sum, and divide by the original number of trees.
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
    """Trees of a forest in the form of TreeEnsemble, where each leaf has a single vote.

    A tree has as many copies as its leaf with the most votes has votes: copy 0 has the first vote of each
    leaf, copy 1 the second, and so on. A leaf with fewer votes gets a vote of 0 (`pads_with_zero`, for sums),
    or repeats its first vote, which changes no minimum or maximum.
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
            "nodes_modes": _vector("uint8", [forest.modes[position] for position in branches]),
            "nodes_splits": _vector(element_type, [forest.splits[position] for position in branches]),
            "nodes_truenodeids": self._ids[0],
            "nodes_falsenodeids": self._ids[1],
            "nodes_trueleafs": self._are_leaves[0],
            "nodes_falseleafs": self._are_leaves[1],
            **({"nodes_missing_value_tracks_true": tracks} if tracks else {}),
            "leaf_targetids": [vote.target for vote in self._leaves],
            "leaf_weights": _vector(element_type, [vote.weight for vote in self._leaves]),
        }

    def _add_tree(self, root: int, copy: int) -> None:
        children = self._forest.children
        self.roots.append(len(self._branches))
        pending = [(root, -1, 0)]
        if not children[root]:
            # Write a single leaf as a branch with a copy of the leaf on each side: if both sides refer to one
            # leaf, runtimes read a different leaf.
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
                # Add a branch before a leaf on the other side, so that their indices differ: older releases
                # of onnxruntime treat a root with equal indices on both sides as a leaf.
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


def _vector(element_type: str, values: Sequence[float]) -> Tensor:
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
    """Return the stage that adds the base values, as a list; the list is empty if all of them are 0."""
    return [Stage("Add", constant=base)] if any(base) else []


def final_stages(transform: bytes, targets: int, forest: Forest, out: Rewriter) -> list[Stage]:
    """Return the stages that apply the transform and cast to float, the type of all results."""
    to_float = [Stage("Cast", {"to": BY_NAME["float"].number})] if forest.element_type == "double" else []
    if transform == b"NONE":
        return to_float
    if transform in _TRANSFORM_STAGES:
        return [_TRANSFORM_STAGES[transform], *to_float]
    # A LinearRegressor with an identity matrix applies a transform for which ai.onnx has no operator. The
    # product with the zeros of the matrix turns a row with an infinite score into NaN.
    if targets > 1 and not forest.has_finite_scores:
        reason = f"scores may be infinite or NaN in float, and no nodes apply {transform.decode()} to these"
        remedy = "use finite weights and base values, with sums that float can represent"
        raise CannotConvert(reason, "value.unsupported", remedy=remedy)
    out.require_elements(targets, targets)
    identity = [float(row == column) for row in range(targets) for column in range(targets)]
    attributes = {"coefficients": identity, "targets": targets, "post_transform": transform}
    return [*to_float, Stage("LinearRegressor", attributes)]


_TRANSFORM_STAGES = {b"SOFTMAX": Stage("Softmax", {"axis": 1}), b"LOGISTIC": Stage("Sigmoid")}


def read_transform(node: Node) -> bytes:
    """Return the `post_transform` of a node; raise CannotConvert if it is unknown."""
    transform: bytes = node.attribute("post_transform", b"NONE")
    if transform not in TRANSFORMS:
        raise CannotConvert(f"unknown post_transform {transform.decode(errors='replace')!r}", "node.invalid")
    return transform

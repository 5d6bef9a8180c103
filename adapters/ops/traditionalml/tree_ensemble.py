"""Adapters of TreeEnsembleRegressor and TreeEnsembleClassifier, and of TreeEnsemble (ai.onnx.ml 5).

Upgrades to opset 5 replace the older operators by TreeEnsemble, which has no base values and labels: separate
nodes add these. The downgrade emits TreeEnsembleRegressor, whose lists contain branches and leaves. Version 3
of the older operators adds tensor attributes for numbers.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor, adapter
from opshift.adapters.core.rewriter import Attributes
from opshift.adapters.emit.expression import cast
from opshift.adapters.emit.shapes import fits_float32
from opshift.adapters.ops.traditionalml.trees import (
    AGGREGATES,
    LEAF,
    MODES,
    TRANSFORMS,
    Forest,
    apply_stages,
    base_value_stages,
    emit_ai_onnx,
    emit_ensemble,
    final_stages,
    read_forest,
    read_transform,
)
from opshift.model.tensors import require_tensor

MISSING_VOTE_REMEDY = "give every leaf a weight for every target or class, which may be 0"
"""Remedy for targets that get no vote (leaf weight) in some rows of the input."""

TENSOR_SUFFIX = "_as_tensor"
"""Suffix of the attributes that version 3 added."""

IGNORED_TENSOR = "nodes_hitrates_as_tensor"
"""Attribute with the frequency of each tree node in training, which has no effect on results."""


@adapter("TreeEnsembleRegressor", 3, 5, domain="ai.onnx.ml")
def convert_regressor(node: Node, out: Rewriter) -> None:
    """Convert to TreeEnsemble, with nodes for base values, the transform and a Cast to float."""
    forest = read_forest(node, "target", node.attribute("n_targets", 0), out)
    aggregate = AGGREGATES.get(node.attribute("aggregate_function", b"SUM"))
    if aggregate is None:
        raise CannotConvert(
            f"unknown aggregate_function {node.attribute('aggregate_function').decode(errors='replace')!r}",
            "node.invalid",
        )
    transform, ensemble_transform = _target_transforms(node, forest)
    final = final_stages(transform, forest.targets, forest, out)
    stages = [*base_value_stages(forest.base), *final]
    scores = out.fresh("scores") if stages else node.outputs[0]
    emit_ensemble(node, forest, scores, out, aggregate, TRANSFORMS[ensemble_transform])
    apply_stages(scores, stages, forest.element_type, node.outputs[0], out)


@adapter("TreeEnsembleClassifier", 3, 5, domain="ai.onnx.ml")
def convert_classifier(node: Node, out: Rewriter) -> None:
    """Convert to TreeEnsemble, and nodes that return the label of the class with the highest score."""
    classes = len(_class_labels(node))
    forest = read_forest(node, "class", classes, out)
    if classes == 1:
        reason = "the classifier has a single class label, but onnxruntime returns 0 or 1"
        raise CannotConvert(reason, "result.runtime-dependent")
    if classes == 2 and {vote.target for vote in forest.all_votes()} == {0}:
        _convert_single_score(node, replace(forest, targets=1), out)
    else:
        _convert_score_per_class(node, forest, out)


@adapter(("TreeEnsembleRegressor", "TreeEnsembleClassifier"), 3, 1, domain="ai.onnx.ml")
def move_tensors_to_float_lists(node: Node, out: Rewriter) -> None:
    """Move tensors to lists, named without `_as_tensor`, if float represents the numbers exactly."""
    tensors = [name for name in node.attributes if name.endswith(TENSOR_SUFFIX)]
    lists = {}
    for name in tensors:
        if name == IGNORED_TENSOR:
            continue
        values = require_tensor(node.attribute(name)).values
        lists[name.removesuffix(TENSOR_SUFFIX)] = [*values]
        if not all(map(fits_float32, values)):
            reason = f"{name} has numbers that float does not represent exactly"
            remedy = "round them if the model tolerates it, or keep ai.onnx.ml at 3 or later"
            raise CannotConvert(reason, "value.inexact", remedy=remedy)
    out.replace(node, attributes={**node.without(*tensors), **lists})


def _target_transforms(node: Node, forest: Forest) -> tuple[bytes, bytes]:
    """Return the transform for separate nodes after TreeEnsemble, and the transform of TreeEnsemble itself.

    For a single target, the specification applies every transform, but onnxruntime only PROBIT. Therefore,
    separate nodes apply PROBIT, and TreeEnsemble gets the other transforms of a single target.
    """
    _require_base_values(forest, forest.targets)
    transform = read_transform(node)
    if any(forest.base) and len(forest.guaranteed_targets()) < forest.targets:
        reason = "onnxruntime omits the base value of a target without a vote"
        raise CannotConvert(reason, "result.runtime-dependent", remedy=MISSING_VOTE_REMEDY)
    if forest.targets == 1 and any(len(votes) > 1 for votes in forest.votes):
        reason = "a leaf has several weights for the only target"
        raise CannotConvert(reason, "value.unsupported", remedy="replace the weights by their sum")
    if forest.targets > 1 or transform in (b"NONE", b"PROBIT"):
        return transform, b"NONE"
    if any(forest.base):
        raise CannotConvert(
            f"onnxruntime omits post_transform {transform.decode()} after base_values for a single target",
            "result.runtime-dependent",
            remedy="set post_transform to NONE to keep the results of onnxruntime",
        )
    return b"NONE", transform


def _require_base_values(forest: Forest, count: int) -> None:
    if forest.base and len(forest.base) != count:
        reason = f"the node has {len(forest.base)} base_values, expected {count} or none"
        raise CannotConvert(reason, "node.invalid")


def _class_labels(node: Node) -> tuple[int, ...] | tuple[bytes, ...]:
    strings: tuple[bytes, ...] = node.attribute("classlabels_strings", ())
    numbers: tuple[int, ...] = node.attribute("classlabels_int64s", ())
    if bool(strings) == bool(numbers):
        reason = "exactly one of classlabels_strings and classlabels_int64s must be set"
        raise CannotConvert(reason, "node.invalid")
    return strings or numbers


def _convert_single_score(node: Node, forest: Forest, out: Rewriter) -> None:
    """Convert a classifier of two classes with weights for class 0 only: one score determines both scores.

    The specification does not define the label. It is the second class if the score is above 0.5, or above 0
    if a weight is negative, as in onnxruntime.
    """
    transform = read_transform(node)
    _require_base_values(forest, 1)
    if transform not in (b"NONE", b"LOGISTIC"):
        reason = f"post_transform {transform.decode()} of one score for two classes is not defined"
        raise CannotConvert(reason, "result.undefined")
    element_type, is_share = forest.element_type, all(vote.weight >= 0 for vote in forest.all_votes())
    score = out.fresh("score")
    _emit_class_scores(node, forest, score, out)
    if out.is_used(node.output(0)):
        threshold = out.constant(0.5 if is_share else 0.0, element_type)
        is_second = emit_ai_onnx("Greater", [score, threshold], out)
        column = emit_ai_onnx("Reshape", [is_second, out.int64([-1])], out)
        _emit_labels(out.cast(column, "int64", opset=9), node, out)
    if not out.is_used(node.output(1)):
        return
    # If no weight is negative and there is no transform, both scores add up to 1; otherwise, to 0.
    if is_share and transform == b"NONE":
        other = emit_ai_onnx("Sub", [out.constant(1.0, element_type), score], out)
    else:
        other = emit_ai_onnx("Neg", [score], out)
    stages = final_stages(transform, 2, forest, out)
    both = emit_ai_onnx("Concat", [other, score], out, "" if stages else node.output(1), axis=1)
    apply_stages(both, stages, element_type, node.output(1), out)


def _emit_class_scores(node: Node, forest: Forest, result: str, out: Rewriter) -> None:
    """Emit TreeEnsemble, and the addition of base values; `result` is the name of the sums."""
    base_stages = base_value_stages(forest.base)
    votes = out.fresh("votes") if base_stages else result
    emit_ensemble(node, forest, votes, out)
    apply_stages(votes, base_stages, forest.element_type, result, out)


def _emit_labels(index: str, node: Node, out: Rewriter) -> None:
    labels = _class_labels(node)
    suffix = "strings" if isinstance(labels[0], bytes) else "int64s"
    mapping: Attributes = {"keys_int64s": [*range(len(labels))], f"values_{suffix}": [*labels]}
    out.emit("LabelEncoder", [index], [node.output(0)], **mapping)


def _convert_score_per_class(node: Node, forest: Forest, out: Rewriter) -> None:
    """Convert a classifier with one score per class; the highest untransformed score gives the label."""
    _require_base_values(forest, forest.targets)
    stages = final_stages(read_transform(node), forest.targets, forest, out)
    _require_agreement(forest, out.is_used(node.output(0)))
    result = node.output(1) if out.is_used(node.output(1)) else ""
    scores = result if result and not stages else out.fresh("scores")
    _emit_class_scores(node, forest, scores, out)
    if out.is_used(node.output(0)):
        _emit_labels(emit_ai_onnx("ArgMax", [scores], out, axis=1, keepdims=0), node, out)
    if result:
        apply_stages(scores, stages, forest.element_type, result, out)


def _require_agreement(forest: Forest, has_label: bool) -> None:
    """Refuse a classifier for which onnxruntime differs from the specification."""
    guaranteed = forest.guaranteed_targets()
    if forest.targets == 2 and has_label:
        raise CannotConvert(
            "for two classes onnxruntime selects the second if its score is above 0, not the higher score",
            "result.runtime-dependent",
            remedy="assign all weights to class 0, whose score then determines class 1, or drop the label",
        )
    if forest.targets == 2 and forest.base:
        reason = "onnxruntime does not add base_values to the scores of two classes"
        raise CannotConvert(reason, "result.runtime-dependent")
    if forest.targets == 2 and 1 not in guaranteed:
        reason = "onnxruntime computes a score for the second of two classes even without a vote for it"
        raise CannotConvert(reason, "result.runtime-dependent", remedy=MISSING_VOTE_REMEDY)
    votes_are_positive = all(vote.weight > 0 for vote in forest.all_votes())
    if has_label and not forest.base and not votes_are_positive and len(guaranteed) < forest.targets:
        reason = "onnxruntime never chooses a class without a vote"
        raise CannotConvert(reason, "result.runtime-dependent", remedy=MISSING_VOTE_REMEDY)


MEMBER_MODE = 6
"""Number of BRANCH_MEMBER in `nodes_modes`."""

MODE_NAMES = {number: name for name, number in MODES.items() if name != LEAF}
"""Names of the comparisons in TreeEnsembleRegressor, by their number in TreeEnsemble."""

ERROR = (
    "at most (n + 1) 2^-24 of the sum of the magnitudes of the leaves that n trees select, and 1 unit in the "
    "last place of float16"
)

MAX_NODES = 1 << 20
"""Maximum number of listed tree nodes; a node with several parents is listed once for each path to it."""


class _Entry(NamedTuple):
    """Tree node as a row of the `nodes_*` lists; a leaf has the defaults in all fields but the ids."""

    tree: int
    node_id: int
    mode: bytes = LEAF
    feature: int = 0
    split: float = 0.0
    track: int = 0
    children: tuple[int, int] = (0, 0)


@adapter("TreeEnsemble", 5, 4, domain="ai.onnx.ml", error=ERROR)
def convert_to_regressor(node: Node, out: Rewriter) -> None:
    """Convert to TreeEnsembleRegressor; a BRANCH_MEMBER node becomes a chain of comparisons."""
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
    """Lister of the nodes of all trees of a TreeEnsemble, for the attributes of TreeEnsembleRegressor."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._modes = require_tensor(node.attribute("nodes_modes")).values
        self._splits = require_tensor(node.attribute("nodes_splits"))
        self._weights = require_tensor(node.attribute("leaf_weights"))
        self._tracks = node.attribute("nodes_missing_value_tracks_true", ()) or (0,) * len(self._modes)
        self._member_sets = _member_sets(node, self._modes)
        # A path without a cycle visits each branch, and each member of a set, at most once.
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
            **_number_attributes("nodes_values", splits, is_double),
            **_number_attributes("target_weights", weights, is_double),
        }

    def _list_tree(self, tree: int, root: int) -> None:
        """List a tree from its root.

        `pending` has for each entry to visit: position, depth, index among branches or leaves, whether the
        entry is a leaf, and the number of the set member to compare with.
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
            self._entries[position] = self._branch_entry(
                tree, position - start, index, member, children[0] - start
            )
            self._entries += [_Entry(tree, child - start) for child in children]
            pending += [(child, depth + 1, *side) for child, side in zip(children, sides, strict=True)]

    def _children_of(self, index: int, member: int) -> list[tuple[int, bool, int]]:
        """Return the true and the false child of a branch: index, whether it is a leaf, and set member.

        Within a set, the false child compares the next member.
        """
        sides = [
            (
                self._column_of(f"nodes_{side}nodeids")[index],
                bool(self._column_of(f"nodes_{side}leafs")[index]),
                0,
            )
            for side in ("true", "false")
        ]
        if self._modes[index] == MEMBER_MODE and member + 1 < len(self._member_sets[index]):
            return [sides[0], (index, False, member + 1)]
        return sides

    def _branch_entry(self, tree: int, node_id: int, index: int, member: int, child: int) -> _Entry:
        is_set = self._modes[index] == MEMBER_MODE
        split = self._member_sets[index][member] if is_set else self._splits.values[index]
        mode = b"BRANCH_EQ" if is_set else MODE_NAMES[self._modes[index]]
        feature = self._column_of("nodes_featureids")[index]
        return _Entry(tree, node_id, mode, feature, split, self._tracks[index], (child, child + 1))

    def _column_of(self, name: str) -> Sequence[int]:
        column: Sequence[int] = self._node.attribute(name)
        return column


def _member_sets(node: Node, modes: Sequence[int]) -> dict[int, list[float]]:
    """Return the set of each BRANCH_MEMBER node, by position in `nodes_modes`; NaN separates the sets."""
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


def _number_attributes(name: str, values: list[float], is_double: bool) -> Attributes:
    if is_double:
        return {f"{name}_as_tensor": Tensor("double", (len(values),), tuple(values))}
    return {name: values}

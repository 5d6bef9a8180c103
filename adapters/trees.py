"""TreeEnsembleRegressor and TreeEnsembleClassifier: TreeEnsemble took their place at 5.

It has no base values and no labels; nodes around it have them.
"""

from __future__ import annotations

from typing import Any

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.adapters.tree_reading import read_forest, read_numbers
from opshift.adapters.tree_scores import (
    AGGREGATES,
    TRANSFORMS,
    base_stage,
    cast,
    emit,
    emit_ensemble,
    in_turn,
    last_stages,
    transform_of,
)
from opshift.adapters.tree_structure import Forest

UNVOTED = "give every leaf a weight, if need be 0, for each of them"


@adapter("TreeEnsembleRegressor", 3, 5, domain="ai.onnx.ml")
def base_values_are_added_behind(node: Node, out: Rewriter) -> None:
    """Base values and the transform become nodes behind TreeEnsemble; the result is float as before."""
    targets = node.attribute("n_targets", 0)
    forest = read_forest(node, "target", targets, out)
    aggregate = AGGREGATES.get(node.attribute("aggregate_function", b"SUM"))
    if aggregate is None:
        raise CannotConvert("its aggregate_function is none that is defined")
    base = _base_values(node, (0, targets))
    if any(base) and len(forest.sure_targets()) < targets:
        raise CannotConvert(
            "onnxruntime drops the base value of a target that no leaf of a row votes for", remedy=UNVOTED
        )
    transform = transform_of(node)
    kept = 0
    if targets == 1:
        kept = _only_target(forest, base, transform)
        transform = b"NONE" if kept else transform
    stages = [*base_stage(base, forest.element_type), *last_stages(transform, targets, forest.element_type)]
    raw = out.fresh("scores") if stages else node.outputs[0]
    emit_ensemble(node, forest, targets, raw, out, aggregate, kept)
    in_turn(raw, stages, node.outputs[0], out)


@adapter("TreeEnsembleClassifier", 3, 5, domain="ai.onnx.ml")
def labels_are_looked_up(node: Node, out: Rewriter) -> None:
    """The label is that of the highest score, which ArgMax finds and LabelEncoder names."""
    labels = _labels(node)
    forest = read_forest(node, "class", len(labels), out)
    if len(labels) == 1:
        raise CannotConvert("it has one class label only: onnxruntime answers 0 or 1 instead of it")
    if len(labels) == 2 and {vote.target for vote in forest.all_votes()} == {0}:
        _one_score(node, forest, out)
    else:
        _score_per_class(node, forest, len(labels), out)


def _only_target(forest: Forest, base: tuple[float, ...], transform: bytes) -> int:
    """The transform of a single target, by number, where TreeEnsemble has to do it.

    The definition applies it; onnxruntime does so for PROBIT only, in TreeEnsemble too.
    """
    if any(len(leaf) > 1 for tree in forest.trees for leaf in forest.leaves(tree)):
        raise CannotConvert("a leaf has several weights for the only target", remedy="add them up")
    if transform in (b"NONE", b"PROBIT"):
        return 0
    if any(base):
        raise CannotConvert(
            f"post_transform {transform.decode()} after base_values: onnxruntime omits it for one target",
            remedy="set post_transform to NONE to keep what onnxruntime gives",
        )
    return TRANSFORMS[transform]


def _one_score(node: Node, forest: Forest, out: Rewriter) -> None:
    """Two classes and votes for the first only: its score speaks for the second.

    The definition says no more; as in onnxruntime the bar is 0.5 if no weight is below zero, and 0 otherwise.
    """
    base = _base_values(node, (0, 1))
    transform = transform_of(node)
    if transform not in (b"NONE", b"LOGISTIC"):
        raise CannotConvert(
            f"post_transform {transform.decode()} of one score for two classes is not defined"
        )
    of = forest.element_type
    are_shares = all(vote.weight >= 0 for vote in forest.all_votes())
    adding = base_stage(base, of)
    score = out.fresh("score")
    raw = out.fresh("votes") if adding else score
    emit_ensemble(node, forest, 1, raw, out)
    in_turn(raw, adding, score, out)
    _label_above(0.5 if are_shares else 0.0, score, of, node, out)
    if out.is_used(node.output(1)):
        sums_to_one = are_shares and transform == b"NONE"
        other = emit("Sub", [out.constant(1.0, of), score], out) if sums_to_one else emit("Neg", [score], out)
        stages = last_stages(transform, 2, of)
        both = emit("Concat", [other, score], out, 1 if stages else (node.output(1),), axis=1)
        in_turn(both, stages, node.output(1), out)


def _label_above(bar: float, score: str, of: str, node: Node, out: Rewriter) -> None:
    if out.is_used(node.output(0)):
        is_second = emit("Greater", [score, out.constant(bar, of)], out)
        flat = emit("Reshape", [is_second, out.constant([-1], "int64")], out)
        _look_up(cast(flat, out, 1, to="int64"), node, out)


def _score_per_class(node: Node, forest: Forest, classes: int, out: Rewriter) -> None:
    """As many scores as classes."""
    base = _base_values(node, (0, classes))
    transform = transform_of(node)
    has_label = out.is_used(node.output(0))
    sure = forest.sure_targets()
    if classes == 2:
        _require_plain(has_label, base, sure)
    elif has_label and not base and len(sure) < classes and any(v.weight <= 0 for v in forest.all_votes()):
        raise CannotConvert(
            "onnxruntime never chooses a class that no leaf of a row votes for", remedy=UNVOTED
        )
    adding, stages = (
        base_stage(base, forest.element_type),
        last_stages(transform, classes, forest.element_type),
    )
    result = node.output(1) if out.is_used(node.output(1)) else ""
    scores = result if result and not stages else out.fresh("scores")
    raw = out.fresh("votes") if adding else scores
    emit_ensemble(node, forest, classes, raw, out)
    in_turn(raw, adding, scores, out)
    if has_label:
        _look_up(emit("ArgMax", [scores], out, axis=1, keepdims=0), node, out)
    if result:
        in_turn(scores, stages, result, out)


def _require_plain(has_label: bool, base: tuple[float, ...], sure: set[int]) -> None:
    """Two classes with votes for the second: onnxruntime departs from the definition in several ways."""
    if has_label:
        raise CannotConvert(
            "of two classes onnxruntime chooses the second if it scores above 0, not the higher one",
            remedy="let all weights be for class 0, whose score then speaks for class 1; or drop the label",
        )
    if base or 1 not in sure:
        raise CannotConvert(
            "the scores of two classes differ from the definition in onnxruntime", remedy=UNVOTED
        )


def _look_up(index: str, node: Node, out: Rewriter) -> None:
    labels = _labels(node)
    kind = "strings" if isinstance(labels[0], bytes) else "int64s"
    lists: dict[str, Any] = {"keys_int64s": [*range(len(labels))], f"values_{kind}": [*labels]}
    out.emit("LabelEncoder", [index], [node.output(0)], **lists)


def _labels(node: Node) -> tuple[int, ...] | tuple[bytes, ...]:
    strings: tuple[bytes, ...] = node.attribute("classlabels_strings", ())
    numbers: tuple[int, ...] = node.attribute("classlabels_int64s", ())
    if bool(strings) == bool(numbers):
        raise CannotConvert("it has to state its labels, either as strings or as numbers")
    return strings or numbers


def _base_values(node: Node, lengths: tuple[int, ...]) -> tuple[float, ...]:
    base: tuple[float, ...] = read_numbers(node, "base_values").values
    if len(base) not in lengths:
        raise CannotConvert(
            f"it has {len(base)} base_values; {' or '.join(map(str, lengths))} have a meaning"
        )
    return base

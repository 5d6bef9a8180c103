"""TreeEnsembleRegressor and TreeEnsembleClassifier: TreeEnsemble took their place at 5.

It has no base values and no labels; nodes around it have them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.adapters.tree_reading import read_forest
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

UNVOTED = "give every leaf a weight, if need be 0, for every target or class"


@adapter("TreeEnsembleRegressor", 3, 5, domain="ai.onnx.ml")
def base_values_are_added_behind(node: Node, out: Rewriter) -> None:
    """Base values and the transform become nodes behind TreeEnsemble; the result is float as before."""
    forest = read_forest(node, "target", node.attribute("n_targets", 0), out)
    aggregate = AGGREGATES.get(node.attribute("aggregate_function", b"SUM"))
    if aggregate is None:
        raise CannotConvert("its aggregate_function is none that is defined")
    transform, kept = _target_transforms(node, forest)
    stages = [
        *base_stage(forest.base, forest.element_type),
        *last_stages(transform, forest.targets, forest.element_type),
    ]
    raw = out.fresh("scores") if stages else node.outputs[0]
    emit_ensemble(node, forest, raw, out, aggregate, TRANSFORMS[kept])
    in_turn(raw, stages, node.outputs[0], out)


@adapter("TreeEnsembleClassifier", 3, 5, domain="ai.onnx.ml")
def labels_are_looked_up(node: Node, out: Rewriter) -> None:
    """The label is that of the highest score, which ArgMax finds and LabelEncoder names."""
    classes = len(_labels(node))
    forest = read_forest(node, "class", classes, out)
    if classes == 1:
        raise CannotConvert("it has one class label only: onnxruntime answers 0 or 1 instead of it")
    if classes == 2 and {vote.target for vote in forest.all_votes()} == {0}:
        _one_score(node, replace(forest, targets=1), out)
    else:
        _score_per_class(node, forest, out)


def _target_transforms(node: Node, forest: Forest) -> tuple[bytes, bytes]:
    """The transform to apply behind TreeEnsemble, and the one to leave to it.

    The definition applies all to a single target, onnxruntime PROBIT only, in TreeEnsemble too.
    """
    _require_base_values(forest, forest.targets)
    transform = transform_of(node)
    if any(forest.base) and len(forest.sure_targets()) < forest.targets:
        raise CannotConvert("onnxruntime omits the base value of a target without a vote", remedy=UNVOTED)
    if forest.targets == 1 and any(len(votes) > 1 for votes in forest.votes):
        raise CannotConvert("a leaf has several weights for the only target", remedy="add them up")
    if forest.targets > 1 or transform in (b"NONE", b"PROBIT"):
        return transform, b"NONE"
    if any(forest.base):
        raise CannotConvert(
            f"post_transform {transform.decode()} after base_values: onnxruntime omits it for one target",
            remedy="set post_transform to NONE to keep what onnxruntime gives",
        )
    return b"NONE", transform


def _one_score(node: Node, forest: Forest, out: Rewriter) -> None:
    """Two classes and votes for the first only: its score speaks for the second.

    The definition says no more; as in onnxruntime the bar is 0.5 if no weight is below zero, and 0 otherwise.
    """
    transform = transform_of(node)
    _require_base_values(forest, 1)
    if transform not in (b"NONE", b"LOGISTIC"):
        raise CannotConvert(f"{transform.decode()} of one score for two classes is not defined")
    are_shares = all(vote.weight >= 0 for vote in forest.all_votes())
    score = _class_scores(node, forest, out.fresh("score"), out)
    if out.is_used(node.output(0)):
        bar = out.constant(0.5 if are_shares else 0.0, forest.element_type)
        is_second = emit("Reshape", [emit("Greater", [score, bar], out), out.constant([-1], "int64")], out)
        _look_up(cast(is_second, "", out, to="int64"), node, out)
    if out.is_used(node.output(1)):
        _both_scores(score, are_shares, transform, forest.element_type, node.output(1), out)


def _both_scores(score: str, are_shares: bool, transform: bytes, of: str, result: str, out: Rewriter) -> None:
    """A column for each class: shares add up to one, margins are opposites."""
    if are_shares and transform == b"NONE":
        other = emit("Sub", [out.constant(1.0, of), score], out)
    else:
        other = emit("Neg", [score], out)
    stages = last_stages(transform, 2, of)
    both = emit("Concat", [other, score], out, "" if stages else result, axis=1)
    in_turn(both, stages, result, out)


def _score_per_class(node: Node, forest: Forest, out: Rewriter) -> None:
    """As many scores as classes, of which the label has the highest, before the transform."""
    _require_base_values(forest, forest.targets)
    stages = last_stages(transform_of(node), forest.targets, forest.element_type)
    _require_agreement(forest, out.is_used(node.output(0)))
    result = node.output(1) if out.is_used(node.output(1)) else ""
    scores = _class_scores(node, forest, result if result and not stages else out.fresh("scores"), out)
    if out.is_used(node.output(0)):
        _look_up(emit("ArgMax", [scores], out, axis=1, keepdims=0), node, out)
    if result:
        in_turn(scores, stages, result, out)


def _class_scores(node: Node, forest: Forest, result: str, out: Rewriter) -> str:
    """The sums of votes and base values, under the name `result`."""
    adding = base_stage(forest.base, forest.element_type)
    votes = out.fresh("votes") if adding else result
    emit_ensemble(node, forest, votes, out)
    in_turn(votes, adding, result, out)
    return result


def _require_agreement(forest: Forest, has_label: bool) -> None:
    """Refuse where onnxruntime and the definition differ over a score for each class."""
    sure = forest.sure_targets()
    if forest.targets == 2 and has_label:
        raise CannotConvert(
            "of two classes onnxruntime chooses the second if it scores above 0, not the higher one",
            remedy="let all weights be for class 0, whose score then speaks for class 1; or drop the label",
        )
    if forest.targets == 2 and forest.base:
        raise CannotConvert("onnxruntime does not add base_values to the scores of two classes")
    if forest.targets == 2 and 1 not in sure:
        raise CannotConvert("onnxruntime invents a score for the second of two classes", remedy=UNVOTED)
    a_vote_wins = all(vote.weight > 0 for vote in forest.all_votes())
    if has_label and not forest.base and not a_vote_wins and len(sure) < forest.targets:
        raise CannotConvert("onnxruntime never chooses a class without a vote", remedy=UNVOTED)


def _require_base_values(forest: Forest, count: int) -> None:
    if forest.base and len(forest.base) != count:
        raise CannotConvert(f"it has {len(forest.base)} base_values where {count} or none have a meaning")


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

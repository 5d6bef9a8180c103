"""TreeEnsembleRegressor and TreeEnsembleClassifier, which TreeEnsemble replaced in ai.onnx.ml 5.

TreeEnsemble has neither base values nor labels; separate nodes add them. Version 3 added numbers as tensors.
"""

from dataclasses import replace

from opshift.adapters import CannotConvert, Node, Rewriter, adapter
from opshift.adapters.core.rewriter import Attributes
from opshift.adapters.emit.shapes import fits_float32
from opshift.adapters.ops.traditionalml.trees import (
    AGGREGATES,
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
"""Remedy for targets without a vote in some rows."""

TENSOR_SUFFIX = "_as_tensor"
"""Suffix of the attributes that version 3 added."""

IGNORED_TENSOR = "nodes_hitrates_as_tensor"
"""Frequency of each node in training. It has no effect on results, so it may be dropped."""


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
    final = final_stages(transform, forest.targets, forest.element_type, out)
    stages = [*base_value_stages(forest.base), *final]
    scores = out.fresh("scores") if stages else node.outputs[0]
    emit_ensemble(node, forest, scores, out, aggregate, TRANSFORMS[ensemble_transform])
    apply_stages(scores, stages, forest.element_type, node.outputs[0], out)


@adapter("TreeEnsembleClassifier", 3, 5, domain="ai.onnx.ml")
def convert_classifier(node: Node, out: Rewriter) -> None:
    """Convert to TreeEnsemble; ArgMax finds the highest score, and LabelEncoder maps it to the label."""
    classes = len(_labels(node))
    forest = read_forest(node, "class", classes, out)
    if classes == 1:
        reason = "the classifier has one class label, instead of which onnxruntime returns 0 or 1"
        raise CannotConvert(reason, "result.runtime-dependent")
    if classes == 2 and {vote.target for vote in forest.all_votes()} == {0}:
        _convert_single_score(node, replace(forest, targets=1), out)
    else:
        _convert_score_per_class(node, forest, out)


@adapter(("TreeEnsembleRegressor", "TreeEnsembleClassifier"), 3, 1, domain="ai.onnx.ml")
def move_tensors_to_float_lists(node: Node, out: Rewriter) -> None:
    """Move tensors to the lists of the same names, if float represents their numbers."""
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
    """Return the transform to apply after TreeEnsemble, and the one to leave to TreeEnsemble.

    The specification applies each transform to a single target. Onnxruntime applies only PROBIT, by
    TreeEnsemble as well.
    """
    _require_base_values(forest, forest.targets)
    transform = read_transform(node)
    if any(forest.base) and len(forest.guaranteed_targets()) < forest.targets:
        reason = "onnxruntime omits the base value of a target without a vote"
        raise CannotConvert(reason, "result.runtime-dependent", remedy=MISSING_VOTE_REMEDY)
    if forest.targets == 1 and any(len(votes) > 1 for votes in forest.votes):
        reason = "a leaf has several weights for the only target"
        raise CannotConvert(reason, "value.unsupported", remedy="replace them by their sum")
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


def _labels(node: Node) -> tuple[int, ...] | tuple[bytes, ...]:
    strings: tuple[bytes, ...] = node.attribute("classlabels_strings", ())
    numbers: tuple[int, ...] = node.attribute("classlabels_int64s", ())
    if bool(strings) == bool(numbers):
        reason = "exactly one of classlabels_strings and classlabels_int64s must be set"
        raise CannotConvert(reason, "node.invalid")
    return strings or numbers


def _convert_single_score(node: Node, forest: Forest, out: Rewriter) -> None:
    """Convert two classes with votes for the first only: its score determines both.

    The specification does not define the label. The threshold is that of onnxruntime: 0.5 if no weight is
    negative, and 0 otherwise.
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
    # Scores without negative weights add up to one, others are opposites.
    if is_share and transform == b"NONE":
        other = emit_ai_onnx("Sub", [out.constant(1.0, element_type), score], out)
    else:
        other = emit_ai_onnx("Neg", [score], out)
    stages = final_stages(transform, 2, element_type, out)
    both = emit_ai_onnx("Concat", [other, score], out, "" if stages else node.output(1), axis=1)
    apply_stages(both, stages, element_type, node.output(1), out)


def _emit_class_scores(node: Node, forest: Forest, result: str, out: Rewriter) -> None:
    """Emit the sums of votes and base values under the name `result`."""
    base_stages = base_value_stages(forest.base)
    votes = out.fresh("votes") if base_stages else result
    emit_ensemble(node, forest, votes, out)
    apply_stages(votes, base_stages, forest.element_type, result, out)


def _emit_labels(index: str, node: Node, out: Rewriter) -> None:
    labels = _labels(node)
    suffix = "strings" if isinstance(labels[0], bytes) else "int64s"
    mapping: Attributes = {"keys_int64s": [*range(len(labels))], f"values_{suffix}": [*labels]}
    out.emit("LabelEncoder", [index], [node.output(0)], **mapping)


def _convert_score_per_class(node: Node, forest: Forest, out: Rewriter) -> None:
    """Convert a score for each class; the label has the highest score before the transform."""
    _require_base_values(forest, forest.targets)
    stages = final_stages(read_transform(node), forest.targets, forest.element_type, out)
    _require_agreement(forest, out.is_used(node.output(0)))
    result = node.output(1) if out.is_used(node.output(1)) else ""
    scores = result if result and not stages else out.fresh("scores")
    _emit_class_scores(node, forest, scores, out)
    if out.is_used(node.output(0)):
        _emit_labels(emit_ai_onnx("ArgMax", [scores], out, axis=1, keepdims=0), node, out)
    if result:
        apply_stages(scores, stages, forest.element_type, result, out)


def _require_agreement(forest: Forest, has_label: bool) -> None:
    """Refuse scores per class for which onnxruntime differs from the specification."""
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
        reason = "onnxruntime invents a score for the second of two classes where it has no vote"
        raise CannotConvert(reason, "result.runtime-dependent", remedy=MISSING_VOTE_REMEDY)
    votes_are_positive = all(vote.weight > 0 for vote in forest.all_votes())
    if has_label and not forest.base and not votes_are_positive and len(guaranteed) < forest.targets:
        reason = "onnxruntime never chooses a class without a vote"
        raise CannotConvert(reason, "result.runtime-dependent", remedy=MISSING_VOTE_REMEDY)

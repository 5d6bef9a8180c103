"""Rewrite NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss (opset 12) as a selection by label.

All dimensions after the classes are flattened into one: scores are N x C x D (batch, classes, others), labels
N x 1 x D. The loss and the weight of a label that equals `ignore_index` or matches no class are 0.
"""

from opshift.adapters import Node, Rewriter, Tensor, adapter
from opshift.adapters.emit.shapes import (
    MAX_CONSTANT_ELEMENTS,
    dimension,
    dimension_tensor,
    index_range,
    merge_dimensions,
    reshape,
    reshape_like,
)


@adapter("NegativeLogLikelihoodLoss", 12, 11)
def expand_nll_loss(node: Node, out: Rewriter) -> None:
    """Select the negated score of each label's class, multiply by weights, then sum or average."""
    _emit_loss(node.inputs[0], node, out)


def _emit_loss(scores: str, node: Node, out: Rewriter) -> None:
    labels, loss = node.inputs[1], node.outputs[:1]
    reduction = node.attribute("reduction", b"mean")
    element_type = out.element_type(node.inputs[0])
    label_mask = _label_mask(node, out)
    flat_scores = _flatten_samples(scores, node.inputs[0], out, has_classes=True)
    losses = out.emit("Neg", [_select_by_label(label_mask, flat_scores, element_type, out)])
    # With neither weights nor `ignore_index`, all samples count equally.
    weights = reshape(node.input(2), (-1, 1), out) if node.input(2) else ""
    if not weights and "ignore_index" in node.attributes:
        weights = out.constant(1.0, element_type)
    if weights:
        weights = _select_by_label(label_mask, weights, element_type, out)
        losses = out.emit("Mul", [losses, weights])
    if reduction == b"none":
        reshape_like(losses, labels, out.emit("Shape", [labels]), out, loss)
    elif reduction == b"mean" and weights:
        total, count = (out.emit("ReduceSum", [each], keepdims=0) for each in (losses, weights))
        out.emit("Div", [total, count], loss)
    else:
        out.emit("ReduceMean" if reduction == b"mean" else "ReduceSum", [losses], loss, keepdims=0)


def _label_mask(node: Node, out: Rewriter) -> str:
    """Return a mask N x C x D: True at the class of each label, unless the label is `ignore_index`."""
    element_type = out.element_type(node.inputs[1])
    labels = _flatten_samples(node.inputs[1], node.inputs[1], out, has_classes=False)
    mask = out.emit("Equal", [labels, _class_indices(node.inputs[0], element_type, out)])
    ignored = node.attribute("ignore_index")
    if ignored is None:
        return mask
    is_ignored = out.emit("Equal", [labels, out.constant(ignored, element_type)])
    return out.emit("And", [mask, out.emit("Not", [is_ignored])])


def _flatten_samples(value: str, like: str, out: Rewriter, *, has_classes: bool) -> str:
    """Return scores as N x C x D or labels as N x 1 x D; `value` has the shape of the input `like`."""
    rank = out.known_rank(like)
    if rank is None:
        return _flatten_unknown_rank(value, out, has_classes=has_classes)
    classes = (1,) if has_classes else ()
    return merge_dimensions(value, [(0,), classes, range(1 + len(classes), rank)], like, out)


def _flatten_unknown_rank(value: str, out: Rewriter, *, has_classes: bool) -> str:
    """Return scores as N x C x D or labels as N x 1 x D; sizes may be 0.

    Flatten computes D, because Reshape cannot infer a size for an empty batch.
    """
    flat = out.emit("Flatten", [value], axis=2 if has_classes else 1)
    column = out.emit("Unsqueeze", [flat], axes=[1])
    if not has_classes:
        return column
    # The scores are N * C x 1 x D here, so a 0 in the shape copies an empty batch, or D.
    sizes = out.emit("Gather", [out.emit("Shape", [value]), out.int64([0, 1])], axis=0)
    return reshape(column, (sizes, 0), out)


def _class_indices(scores: str, element_type: str, out: Rewriter) -> str:
    """Return the class indices as 1 x C x 1."""
    count = dimension(scores, 1, out)
    if isinstance(count, int) and count <= MAX_CONSTANT_ELEMENTS:
        return out.tensor(Tensor(element_type, (1, count, 1), tuple(range(count))))
    indices = out.cast(index_range(dimension_tensor(count, out), out), element_type)
    return reshape(indices, (1, -1, 1), out)


def _select_by_label(label_mask: str, values: str, element_type: str, out: Rewriter) -> str:
    """Return N x D: the value at the class of each label, or 0 if the label selects no class.

    `values` are N x C x D, or C x 1 for all samples.
    """
    selected = out.emit("Where", [label_mask, values, out.constant(0.0, element_type)])
    return out.emit("ReduceSum", [selected], axes=(1,), keepdims=0)


@adapter("SoftmaxCrossEntropyLoss", 12, 11)
def expand_softmax_cross_entropy_loss(node: Node, out: Rewriter) -> None:
    """Apply LogSoftmax, whose result is also the second output, then NegativeLogLikelihoodLoss."""
    log_prob = [node.output(1)] if node.output(1) else 1
    _emit_loss(out.emit("LogSoftmax", node.inputs[:1], log_prob, axis=1, opset=13), node, out)

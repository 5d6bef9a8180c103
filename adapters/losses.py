"""NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: the number that belongs to each sample's class.

All dimensions after the classes are taken as one: scores are N x C x D, labels N x 1 x D. A label that is
no class, as one to ignore may be, picks nothing, which makes its loss and its weight 0.
"""

from __future__ import annotations

from opshift.adapters.node import Node, Tensor
from opshift.adapters.ranges import positions_below
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.sizes import dimension, reshaped
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME


@adapter("NegativeLogLikelihoodLoss", 12, 11)
def likelihood_is_picked_by_label(node: Node, out: Rewriter) -> None:
    """Minus the score of the label's class, weighted, then summed up or averaged."""
    _reduced_loss(node.inputs[0], node, out)


@adapter("SoftmaxCrossEntropyLoss", 12, 11)
def cross_entropy_is_likelihood_of_log_softmax(node: Node, out: Rewriter) -> None:
    """The same loss of the logarithm of the scores' softmax, which is an output of its own."""
    log_prob = [node.output(1)] if node.output(1) else 1
    _reduced_loss(out.emit("LogSoftmax", node.inputs[:1], log_prob, axis=1, opset=13), node, out)


def _reduced_loss(scores: str, node: Node, out: Rewriter) -> None:
    labels, loss = node.inputs[1], node.outputs[:1]
    reduction = node.attribute("reduction", b"mean")
    element_type = out.element_type(node.inputs[0])
    is_label = _is_label(node, out)
    losses = out.emit("Neg", [_picked(is_label, reshaped(scores, (0, 0, -1), out), element_type, out)])
    weights = _weights(is_label, node, element_type, out)
    if weights:
        losses = out.emit("Mul", [losses, weights])
    if reduction == b"none":
        out.emit("Reshape", [losses, out.emit("Shape", [labels])], loss)
    elif reduction == b"mean" and weights:
        total, count = (out.emit("ReduceSum", [each], keepdims=0) for each in (losses, weights))
        out.emit("Div", [total, count], loss)
    else:
        out.emit("ReduceMean" if reduction == b"mean" else "ReduceSum", [losses], loss, keepdims=0)


def _is_label(node: Node, out: Rewriter) -> str:
    """N x C x D: whether a class is the one that the sample's label names, and not the one to ignore."""
    element_type = out.element_type(node.inputs[1])
    labels = reshaped(node.inputs[1], (0, 1, -1), out)
    found = out.emit("Equal", [labels, _classes(node.inputs[0], element_type, out)])
    ignored = node.attribute("ignore_index")
    if ignored is None:
        return found
    is_ignored = out.emit("Equal", [labels, out.constant(ignored, element_type)])
    return out.emit("And", [found, out.emit("Not", [is_ignored])])


def _classes(scores: str, element_type: str, out: Rewriter) -> str:
    """1 x C x 1: the numbers of the classes."""
    count = dimension(scores, 1, out)
    if isinstance(count, int):
        return out.tensor(Tensor(element_type, (1, count, 1), tuple(range(count))))
    numbers = out.emit("Cast", [positions_below(count, out)], to=BY_NAME[element_type].number)
    return reshaped(numbers, (1, -1, 1), out)


def _picked(is_label: str, values: str, element_type: str, out: Rewriter) -> str:
    """N x D: of N x C x D values, or C x 1 for every sample, the one of the label; 0 without a class."""
    chosen = out.emit("Where", [is_label, values, out.constant(0.0, element_type)])
    return out.emit("ReduceSum", [chosen], axes=(1,), keepdims=0)


def _weights(is_label: str, node: Node, element_type: str, out: Rewriter) -> str:
    """N x D: how much each sample counts; `""` if all count the same."""
    weight = node.input(2)
    if weight:
        return _picked(is_label, reshaped(weight, (-1, 1), out), element_type, out)
    if "ignore_index" in node.attributes:
        return _picked(is_label, out.constant(1.0, element_type), element_type, out)
    return ""

"""Adapters of Adagrad, Adam and Momentum, which update tensors by averages or sums of gradients."""

from collections.abc import Iterator
from typing import NamedTuple

from opshift.adapters import Node, Rewriter, adapter
from opshift.adapters.emit.expression import Expression

DOMAIN = "ai.onnx.preview.training"

OPSET = 13
"""Opset of the emitted nodes."""


class Update(NamedTuple):
    """Inputs of the update of one tensor; `rate` and `updates`, the number of earlier updates, are double."""

    rate: Expression
    updates: Expression
    value: Expression
    gradient: Expression
    averages: list[Expression]


@adapter("Adagrad", 1, 0, domain=DOMAIN)
def expand_adagrad(node: Node, out: Rewriter) -> None:
    """Emit `value - rate * gradient / (sqrt(squares) + epsilon)` with sums of squared gradients."""
    results = []
    for element_type, each in _updates_of_tensors(node, 3, out):
        rate = (each.rate / (1 + each.updates * node.attribute("decay_factor", 0.0))).cast(element_type)
        squares = each.averages[0] + each.gradient * each.gradient
        results.append([each.value - rate * each.gradient / _root_of_squares(squares, node), squares])
    _name_results(results, node, out)


@adapter("Adam", 1, 0, domain=DOMAIN)
def expand_adam(node: Node, out: Rewriter) -> None:
    """Emit `value - rate * average / (sqrt(squares) + epsilon)` with averages of gradients and of squares."""
    alpha, beta = node.attribute("alpha", 0.9), node.attribute("beta", 0.999)
    results = []
    for element_type, each in _updates_of_tensors(node, 4, out):
        corrected = (
            each.rate
            * (1 - _power_of(beta, each.updates)).apply("Sqrt")
            / (1 - _power_of(alpha, each.updates))
        )
        rate = _if_repeated(each, corrected, each.rate).cast(element_type)
        average = alpha * each.averages[0] + (1 - alpha) * each.gradient
        squares = beta * each.averages[1] + (1 - beta) * (each.gradient * each.gradient)
        value = each.value - rate * average / _root_of_squares(squares, node)
        value = (1 - node.attribute("norm_coefficient_post", 0.0)) * value
        results.append([value, average, squares])
    _name_results(results, node, out)


@adapter("Momentum", 1, 0, domain=DOMAIN)
def expand_momentum(node: Node, out: Rewriter) -> None:
    """Subtract `rate * momentum`; with mode `nesterov`, `rate * (gradient + alpha * momentum)`."""
    alpha = node.attribute("alpha")
    results = []
    for element_type, each in _updates_of_tensors(node, 3, out):
        # In the first update, the gradient has weight 1 in place of `beta`.
        weight = _if_repeated(each, each.rate.constant(node.attribute("beta")), each.rate.constant(1))
        momentum = alpha * each.averages[0] + weight.cast(element_type) * each.gradient
        is_nesterov = node.attribute("mode") == b"nesterov"
        change = each.gradient + alpha * momentum if is_nesterov else momentum
        results.append([each.value - each.rate.cast(element_type) * change, momentum])
    _name_results(results, node, out)


def _updates_of_tensors(node: Node, kinds: int, out: Rewriter) -> Iterator[tuple[str, Update]]:
    """Yield element type and update of each tensor; the node has `kinds` inputs for every tensor."""
    out = out.for_opset(OPSET, "")
    # double, because the rates depend on small differences from 1.
    rate, updates = (Expression(out.cast(name, "double"), "double", out) for name in node.inputs[:2])
    tensors = (len(node.inputs) - 2) // kinds
    for position in range(2, 2 + tensors):
        element_type = out.element_type(node.inputs[position])
        names = node.inputs[position::tensors]
        value, gradient, *averages = (Expression(each, element_type, out) for each in names)
        gradient = node.attribute("norm_coefficient", 0.0) * value + gradient
        yield element_type, Update(rate, updates, value, gradient, averages)


def _if_repeated(update: Update, repeated: Expression, first: Expression) -> Expression:
    return update.updates.apply("Greater", 0).apply("Where", repeated, first)


def _power_of(base: float, exponent: Expression) -> Expression:
    return exponent.constant(base).apply("Pow", exponent)


def _root_of_squares(squares: Expression, node: Node) -> Expression:
    epsilon: float = node.attribute("epsilon", 1e-6)
    return squares.apply("Sqrt") + epsilon


def _name_results(results: list[list[Expression]], node: Node, out: Rewriter) -> None:
    """Emit the outputs of the node: first the new values of all tensors, then the new averages."""
    names = [each.name for kind in zip(*results, strict=True) for each in kind]
    for name, output in zip(names, node.outputs, strict=True):
        if output:
            out.emit("Identity", [name], [output], domain="", opset=1)

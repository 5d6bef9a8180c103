"""Replace computed inputs of nodes by the constants that declared shapes determine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from opshift.analysis.fit.determined_inputs import RULES
from opshift.analysis.fit.known_node import KnownNode, Sizes
from opshift.checker.ir_features.use import FIRST_IR_WITH_STANDALONE_INITIALIZERS
from opshift.inference.facts import InferenceScope
from opshift.inference.infer_shapes import shape_link
from opshift.inference.infer_types import parameter_at
from opshift.inference.root_scopes import graph_scopes
from opshift.model.graphs import node_place, root_graphs
from opshift.model.messages import ModelProto, NodeProto
from opshift.model.node import Tensor
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.model.tensors import write_tensor
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry
from opshift.rewriting.workspace import FreshNames
from opshift.runtimes.constant_values import is_constant


class KnownShape(NamedTuple):
    """Sizes of a value, and the name of the value with the declaration that determines them."""

    sizes: Sizes
    source: str


class Determined(NamedTuple):
    """Constant that an input of a node has to be."""

    position: int
    parameter: str
    tensor: Tensor
    output: KnownShape


def assume_constants(model: ModelProto, registry: Registry) -> tuple[str, ...]:
    """Replace computed inputs of nodes by constants, and return a sentence for each.

    An input is replaced if the declared shapes admit only one result of its node. The inputs of the graph
    stay. Nodes in functions are not changed, because the shapes may differ between calls.
    """
    sentences: list[str] = []
    if model.ir_version >= FIRST_IR_WITH_STANDALONE_INITIALIZERS:
        names = FreshNames()
        names.avoid(*root_graphs(model))
        # A constant may determine the shapes that another one depends on.
        while found := list(_replace_inputs(model, registry, names)):
            sentences += found
    return tuple(sentences)


def _replace_inputs(model: ModelProto, registry: Registry, names: FreshNames) -> Iterator[str]:
    """Replace inputs of the nodes in the main graph and its subgraphs, and yield a sentence for each."""
    functions = {(canonical_domain(each.domain), each.name) for each in model.functions}
    for scope, path in graph_scopes(model, registry):
        linked = _linked_shapes(scope)
        for node in scope.container.node:
            operator = scope.operator(node.op_type, node.domain)
            is_call = (canonical_domain(node.domain), node.op_type) in functions
            if operator is None or operator.domain != DEFAULT_DOMAIN or is_call:
                continue
            for each in _determined_inputs(node, operator, scope, linked):
                node.input[each.position] = new = names.fresh(node.input[each.position])
                write_tensor(model.graph.initializer.add(), each.tensor, new)
                change = f"`{each.parameter}` becomes {list(each.tensor.values)}"
                reason = f"the declared shape {list(each.output.sizes)} of {each.output.source!r}"
                yield f"{node_place(path, node)}: {change}: {reason} admits no other result"


def _determined_inputs(
    node: NodeProto, operator: OperatorVersion, scope: InferenceScope, linked: Mapping[str, KnownShape]
) -> Iterator[Determined]:
    """Yield the constants for inputs that are not constant and have only one possible value."""
    rules = RULES.get(operator.name, {})
    for position, name in enumerate(node.input):
        formal = parameter_at(operator.inputs, position)
        if formal is None or formal.name not in rules or not name or is_constant(scope, name):
            continue
        outputs = [_known_shape(scope, each) or linked.get(each) for each in node.output]
        shape, element_type = scope.shape(name), scope.element_type(name)
        if not outputs or outputs[0] is None or shape is None or len(shape) > 1 or element_type is None:
            continue
        data = _known_shape(scope, node.input[0])
        length = shape[0] if shape else 1
        sizes = tuple(each.sizes for each in outputs if each)
        values = rules[formal.name](KnownNode(scope.node(node), operator, data and data.sizes, sizes, length))
        if values is not None and length in (None, len(values)):
            tensor = Tensor(element_type, (len(values),) if shape else (), tuple(values))
            yield Determined(position, formal.name, tensor, outputs[0])


def _linked_shapes(scope: InferenceScope) -> dict[str, KnownShape]:
    """Return shapes of values that follow from those of later values, by operators that keep a shape."""
    found: dict[str, KnownShape] = {}
    for node in reversed(scope.container.node):
        operator = scope.operator(node.op_type, node.domain)
        link = shape_link(operator) if operator else None
        if link is not None and link < len(node.input) and node.output:
            output = _known_shape(scope, node.output[0]) or found.get(node.output[0])
            if output is not None:
                found.setdefault(node.input[link], output)
    return found


def _known_shape(scope: InferenceScope, name: str) -> KnownShape | None:
    shape = scope.shape(name) if name else None
    sizes = tuple(each for each in shape or () if each is not None)
    return KnownShape(sizes, name) if sizes == shape else None

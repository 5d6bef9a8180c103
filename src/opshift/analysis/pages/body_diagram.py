"""Diagrams of function bodies."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from opshift.analysis.pages.diagram import MAX_NODES, Box
from opshift.model.attributes import read_attribute
from opshift.model.messages import AttributeProto, FunctionProto, GraphProto, TensorProto
from opshift.registry.models import OperatorVersion

BodyNode = tuple[str, Mapping[str, object], Sequence[str], Sequence[str]]
"""Operator, attributes, inputs and outputs of a node."""


def body_boxes(version: OperatorVersion) -> list[Box]:
    """Return the inputs, the nodes and the outputs of a function body; nothing if it is too large to draw."""
    if version.body is None:
        return []
    nodes = [(each.op_type, each.attributes, each.inputs, each.outputs) for each in version.body.nodes]
    inputs, outputs = ([each.name for each in listed] for listed in (version.inputs, version.outputs))
    return _boxes(inputs, nodes, outputs)


def function_boxes(function: FunctionProto) -> list[Box]:
    """Return the boxes of a function like `body_boxes`, without the values of tensors and subgraphs."""
    nodes = [(each.op_type, dict(_values(each.attribute)), each.input, each.output) for each in function.node]
    return _boxes(function.input, nodes, function.output)


def _values(attributes: Iterable[AttributeProto]) -> Iterator[tuple[str, object]]:
    for each in attributes:
        value = f"@{each.ref_attr_name}" if each.ref_attr_name else read_attribute(each)
        if not isinstance(value, TensorProto | GraphProto):
            yield each.name, value.decode() if isinstance(value, bytes) else value


def _boxes(inputs: Sequence[str], nodes: Sequence[BodyNode], outputs: Sequence[str]) -> list[Box]:
    if len(nodes) > MAX_NODES:
        return []
    boxes = [Box(each) for each in inputs]
    producers = {each: position for position, each in enumerate(inputs)}
    for op_type, attributes, read, written in nodes:
        values = " ".join(
            f"{name}={list(value) if isinstance(value, tuple) else value}"
            for name, value in attributes.items()
        )
        sources = dict.fromkeys(producers[name] for name in read if name in producers)
        producers.update(dict.fromkeys(written, len(boxes)))
        boxes.append(Box(f"{op_type} {values}".strip(), tuple(sources), "node"))
    produced = [each for each in outputs if each in producers]
    return [*boxes, *(Box(name, (producers[name],), "value") for name in produced)]

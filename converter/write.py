"""Put the nodes that adapters emitted into protobuf messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opshift.adapters.bodies import Value
from opshift.adapters.node import Node, Tensor
from opshift.adapters.tensors import write_tensor
from opshift.converter.rewrite import Written, WrittenGraph
from opshift.converter.types import fill_type

_TYPES = {
    "FLOAT": (1, "f"), "INT": (2, "i"), "STRING": (3, "s"), "TENSOR": (4, "t"), "GRAPH": (5, "g"),
    "FLOATS": (6, "floats"), "INTS": (7, "ints"), "STRINGS": (8, "strings"),
}  # fmt: skip


def fill_node(proto: Any, written: Written, origin: Any) -> None:
    """Fill an empty NodeProto; graphs come from `origin`, where they are converted already."""
    node = written.node
    proto.op_type = node.op_type
    if node.domain:
        proto.domain = node.domain
    proto.input.extend(node.inputs)
    proto.output.extend(node.outputs)
    for name, value in node.attributes.items():
        _add_attribute(proto, name, value, written, origin)


def update_node(proto: Any, written: Written, original: Node) -> None:
    """Change an existing NodeProto into `written`; what is the same is left as it is."""
    node = written.node
    if proto.op_type != node.op_type:
        proto.op_type = node.op_type
    if original.domain != node.domain:
        proto.domain = node.domain
    if original.inputs != node.inputs:
        _set(proto.input, node.inputs)
    if original.outputs != node.outputs:
        _set(proto.output, node.outputs)
    kept = {name for name, value in node.attributes.items() if value is original.attributes.get(name)}
    before = len(proto.attribute)
    for name, value in node.attributes.items():
        if name not in kept:
            _add_attribute(proto, name, value, written, proto)
    for index in reversed(range(before)):
        if proto.attribute[index].name not in kept:
            del proto.attribute[index]


def _add_attribute(proto: Any, name: str, value: Any, written: Written, origin: Any) -> None:
    attribute = proto.attribute.add()
    if _is_message(value):
        attribute.CopyFrom(_converted(value, origin))
        attribute.name = name
    else:
        _write(attribute, name, value, written, origin)


def _set(field: Any, values: Sequence[str]) -> None:
    del field[:]
    field.extend(values)


def _is_message(value: Any) -> bool:
    return hasattr(value, "ref_attr_name")


def _converted(value: Any, origin: Any) -> Any:
    if not value.HasField("g") and not value.graphs:
        return value
    return next((each for each in origin.attribute if each.name == value.name), value)


def _write(attribute: Any, name: str, value: Any, written: Written, origin: Any) -> None:
    kind, field = _TYPES[written.operator.attributes[name].type]
    attribute.name = name
    attribute.type = kind
    if isinstance(value, Tensor):
        write_tensor(attribute.t, value)
    elif isinstance(value, WrittenGraph):
        _fill_graph(attribute.g, value, origin)
    elif field in ("t", "g"):
        getattr(attribute, field).CopyFrom(value)
    elif field in ("floats", "ints", "strings"):
        getattr(attribute, field).extend(map(_wire, value))
    else:
        setattr(attribute, field, _wire(value))


def _fill_graph(proto: Any, written: WrittenGraph, origin: Any) -> None:
    """Fill an empty GraphProto."""
    inner = None
    if written.graph.inner is not None:
        inner = _converted(written.graph.inner, origin).g
        proto.CopyFrom(inner)
        for field in (proto.node, proto.input, proto.output):
            del field[:]
        still = {value.name for value in written.graph.inputs}
        proto.value_info.extend(value for value in inner.input if value.name not in still)
    proto.name = written.graph.name
    for values, field in ((written.graph.inputs, proto.input), (written.graph.outputs, proto.output)):
        for value in values:
            _declare(field.add(), value)
    for each in written.nodes:
        fill_node(proto.node.add(), each, origin)
    if inner is not None:
        proto.node.extend(inner.node)
    for each in written.after:
        fill_node(proto.node.add(), each, origin)


def _declare(proto: Any, value: Value) -> None:
    proto.name = value.name
    fill_type(proto.type, value.type, value.dims)


def _wire(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value

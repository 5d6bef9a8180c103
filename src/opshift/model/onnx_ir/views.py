"""Views of onnx_ir's objects with other contents, and traversals of their graphs and tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx_ir

    Container = onnx_ir.Graph | onnx_ir.Function
    MetaOwner = onnx_ir.Model | Container | onnx_ir.Node | onnx_ir.Value


class View:
    """Object with other values of some attributes; a graph or function yields its `nodes`."""

    nodes: list[object]

    def __init__(self, viewed: object, **changed: object) -> None:
        self._viewed = viewed
        vars(self).update(changed)

    def __getattr__(self, name: str) -> object:
        return getattr(self._viewed, name)

    def __iter__(self) -> Iterator[object]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)


def mapped_content(
    attribute: onnx_ir.Attr,
    tensor: Callable[[onnx_ir.TensorProtocol], object],
    graph: Callable[[onnx_ir.Graph], object],
) -> object:
    """Return the value of an attribute with a function applied to each tensor and graph, or `None`."""
    kind, value = attribute.type.name, attribute.value
    if value is not None:
        if kind == "TENSOR":
            return tensor(value)
        if kind == "TENSORS":
            return tuple(map(tensor, value))
        if kind == "GRAPH":
            return graph(value)
        if kind == "GRAPHS":
            return tuple(map(graph, value))
    return None


def initializers_of(container: Container) -> Mapping[str, onnx_ir.Value]:
    """Return the initializers by name; a function has none."""
    return getattr(container, "initializers", {})


def attributes_of(container: Container) -> MutableMapping[str, onnx_ir.Attr]:
    """Return the attributes by name; a graph has none."""
    return getattr(container, "attributes", {})


def carry_over_meta(new: onnx_ir.Model, old: onnx_ir.Model) -> None:
    """Add the data that onnx_ir does not serialize to the objects that both models have."""
    _add_meta(new, old)
    _carry_over(new.graph, old.graph)
    for key, function in new.functions.items():
        if key in old.functions:
            _carry_over(function, old.functions[key])


def _add_meta(new: MetaOwner, old: MetaOwner) -> None:
    for key, data in old.meta.items():
        new.meta.setdefault(key, data)
        if not old.meta.is_valid(key):
            new.meta.invalidate(key)


def _carry_over(new: Container, old: Container) -> None:
    _add_meta(new, old)
    values = _values(old)
    for name, value in _values(new).items():
        twin = values.get(name)
        if twin is not None:
            _add_meta(value, twin)
            _carry_over_node(value.producer(), twin.producer())


def _carry_over_node(new: onnx_ir.Node | None, old: onnx_ir.Node | None) -> None:
    if new is None or old is None or (new.domain, new.op_type) != (old.domain, old.op_type):
        return
    _add_meta(new, old)
    for name in new.attributes.keys() & old.attributes.keys():
        graphs = [_graphs(each.attributes[name]) for each in (new, old)]
        for pair in zip(*graphs, strict=False):
            _carry_over(*pair)


def _values(container: Container) -> dict[str | None, onnx_ir.Value]:
    """Return the inputs, initializers and outputs of nodes by name."""
    outputs = (output for node in container for output in node.outputs)
    return {each.name: each for each in (*container.inputs, *initializers_of(container).values(), *outputs)}


def _graphs(attribute: onnx_ir.Attr) -> list[onnx_ir.Graph]:
    found: list[onnx_ir.Graph] = []
    mapped_content(attribute, lambda _: None, found.append)
    return found

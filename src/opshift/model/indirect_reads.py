"""Collect, rename or remove value names in training, Gradient attributes and sharding specifications."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from opshift.model.graphs import (
    captured_names,
    nested_nodes,
    remove_messages,
    root_graphs,
    training_graphs,
)
from opshift.model.messages import NodeProto

if TYPE_CHECKING:
    from opshift.model.messages import AttributeProto, ModelProto, NodeProto

GRADIENT_DOMAIN, GRADIENT = "ai.onnx.preview.training", "Gradient"
"""Domain and op_type of the only operator with attributes that name values of the graph."""

SOURCES: Final = ("xs", "zs")
"""Attributes of Gradient with the names of the values that the inputs of the node replace."""

RESULT: Final = "y"
"""Attribute of Gradient that names the value to differentiate."""


class NamedValues(NamedTuple):
    """Names of values in attributes of nodes, collected from all graphs and functions of a model.

    Attributes:
        names: all names.
        sources: names of values that a node replaces by its inputs: they are not constant, even if their
            producers are.
    """

    names: frozenset[str] = frozenset()
    sources: frozenset[str] = frozenset()


NO_NAMED_VALUES: Final = NamedValues()


def bound_names(model: ModelProto) -> set[str]:
    """Return the keys and values of all bindings of `training_info`: names of values."""
    infos = model.training_info
    bindings = (each for info in infos for each in (*info.initialization_binding, *info.update_binding))
    return {name for each in bindings for name in (each.key, each.value)}


def values_named_in_attributes(model: ModelProto) -> NamedValues:
    """Return the names of values in the attributes of all nodes of a model."""
    imports = chain(model.opset_import, *(each.opset_import for each in model.functions))
    # Few models import the domain, and only they need a visit of all nodes.
    if all(each.domain != GRADIENT_DOMAIN for each in imports):
        return NO_NAMED_VALUES
    sources, results = set[str](), set[str]()
    for node in nested_nodes(*root_graphs(model), *model.functions):
        for attribute in _naming_attributes(node):
            values = sources if attribute.name in SOURCES else results
            values.update(each.decode(errors="replace") for each in (attribute.s, *attribute.strings))
    return NamedValues(frozenset(sources | results) - {""}, frozenset(sources) - {""})


def rename_in_attributes(node: NodeProto, names: Mapping[str, str]) -> None:
    """Rename the values that the attributes of a node name."""
    for attribute in _naming_attributes(node):
        attribute.strings[:] = [_renamed_value(each, names) for each in attribute.strings]
        if attribute.HasField("s"):
            attribute.s = _renamed_value(attribute.s, names)


def _renamed_value(name: bytes, names: Mapping[str, str]) -> bytes:
    text = name.decode(errors="surrogateescape")  # Bytes that are not UTF-8 stay unchanged.
    return names.get(text, text).encode(errors="surrogateescape")


def names_in_training(model: ModelProto) -> frozenset[str]:
    """Return all names in training bindings, and the names that training graphs read from the main graph."""
    captured = (captured_names(each.graph) for each in training_graphs(model))
    return frozenset(bound_names(model).union(*captured))


def names_read_indirectly(model: ModelProto) -> frozenset[str]:
    """Return the names of values that training reads or updates, or that attributes of nodes name."""
    return names_in_training(model) | values_named_in_attributes(model).names


def _naming_attributes(node: NodeProto) -> Iterator[AttributeProto]:
    if node.op_type == GRADIENT and node.domain == GRADIENT_DOMAIN:
        yield from (each for each in node.attribute if each.name in (*SOURCES, RESULT))


def rename_shardings(node: NodeProto, names: Mapping[str, str]) -> None:
    """Rename the tensors in the sharding specifications of a node; an empty new name removes its entry.

    Call this function wherever the inputs and outputs of a node are renamed.
    """
    # The message classes of an older `onnx` have no device configurations.
    for each in getattr(node, "device_configurations", ()):
        specs = each.sharding_spec
        if not specs:
            continue
        for spec in specs:
            spec.tensor_name = names.get(spec.tensor_name, spec.tensor_name)
        remove_messages(specs, [not spec.tensor_name for spec in specs])


def remove_foreign_shardings(node: NodeProto) -> None:
    """Remove the sharding specifications of tensors that a node neither reads nor produces."""
    configurations = getattr(node, "device_configurations", ())
    tensors = {*node.input, *node.output} if configurations else ()
    for each in configurations:
        if specs := each.sharding_spec:
            remove_messages(specs, [spec.tensor_name not in tensors for spec in specs])

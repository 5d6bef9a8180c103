"""Casts that give a converted model the types of inputs and outputs of its original."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from copy import deepcopy

from opshift.model.attributes import INT
from opshift.model.element_types import BY_NAME
from opshift.model.graphs import defined_values, nested_nodes
from opshift.model.messages import ModelProto, ValueInfoProto
from opshift.model.types import element_type_of

FLOATS, INTEGERS = re.compile("double|b?float.*"), re.compile(r"u?int\d+")


def with_types_of(original: ModelProto, converted: ModelProto) -> tuple[ModelProto, frozenset[str]]:
    """Return a model with the types of another one, and the types that it had instead.

    It is a copy with casts if tensors among its inputs or outputs have other element types, else the model.
    """
    inputs = _differences(original.graph.input, converted.graph.input)
    outputs = _differences(original.graph.output, converted.graph.output)
    if not inputs and not outputs:
        return converted, frozenset()
    model = deepcopy(converted)
    taken = set(defined_values(model.graph))
    names = {name: _unused(name, taken) for name in {**inputs, **outputs}}
    for node in nested_nodes(model.graph):
        node.input[:] = [names.get(each, each) for each in node.input]
        node.output[:] = [names.get(each, each) for each in node.output]
    for tensor in model.graph.initializer:
        tensor.name = names.get(tensor.name, tensor.name)
    nodes = list(model.graph.node)
    del model.graph.node[:]
    for name, (_, new) in inputs.items():
        _add_cast(model, name, names[name], new)
    model.graph.node.extend(nodes)
    for name, (old, _) in outputs.items():
        _add_cast(model, names[name], name, old)
    for values, changed in ((model.graph.input, inputs), (model.graph.output, outputs)):
        for value in values:
            if value.name in changed:
                value.type.tensor_type.elem_type = BY_NAME[changed[value.name][0]].number
    return model, frozenset(each for pair in (*inputs.values(), *outputs.values()) for each in pair)


def _differences(
    originals: Iterable[ValueInfoProto], converted: Iterable[ValueInfoProto]
) -> Mapping[str, tuple[str, str]]:
    """Return the element types of tensors in both models, by name, where they differ."""
    types = {value.name: element_type_of(value.type) for value in converted}
    pairs = ((value.name, element_type_of(value.type), types.get(value.name)) for value in originals)
    return {
        name: (old, new)
        for name, old, new in pairs
        if old is not None and new is not None and old != new and _is_change(old, new)
    }


def _is_change(old: str, new: str) -> bool:
    """Return whether both types are floating-point types, or both integers: other changes are differences."""
    return any(all(kind.fullmatch(each) for each in (old, new)) for kind in (FLOATS, INTEGERS))


def _unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_cast"
    taken.add(name)
    return name


def _add_cast(model: ModelProto, source: str, result: str, element_type: str) -> None:
    node = model.graph.node.add(op_type="Cast", input=[source], output=[result])
    node.attribute.add(name="to", type=INT, i=BY_NAME[element_type].number)

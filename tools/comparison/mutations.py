"""Random faults of a node: ranks, sizes, types, lists, numbers, names, and numbers of inputs and outputs."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, helper, numpy_helper

from comparison.legal_models import count_results

NUMBERS = (-1000, -7, -2, -1, 0, 1, 2, 3, 5, 99, 1000)
STRINGS = ("", "other", "MAX", "x y")
IDENTIFIERS = ("", "Not an operator", "1st", "Relu-6", "a.b")
TYPES = (1, 3, 6, 7, 8, 9, 10, 11)
"""Element types to which values are changed: the types with most kernels, and strings."""

Mutation = Callable[[onnx.ModelProto, onnx.NodeProto, random.Random], bool]
"""Function that changes a node or its inputs; it returns `False` if the node has no such part."""


def mutate(model: onnx.ModelProto, rng: random.Random) -> tuple[str, str]:
    """Change one node of a model, and return its operator and the name of the change."""
    node = rng.choice([each for each in model.graph.node if each.op_type != "Size"] or model.graph.node)
    operator = node.op_type
    while True:
        mutation = rng.choices(MUTATIONS, WEIGHTS)[0]
        if mutation(model, node, rng):
            if mutation is not _change_output_type and model.graph.node[-1].op_type != "Size":
                count_results(model)
            return operator, mutation.__name__.strip("_")


def _list_attributes(node: onnx.NodeProto, kinds: Sequence[int]) -> list[onnx.AttributeProto]:
    return [each for each in node.attribute if each.type in kinds]


def _elements_of(attribute: onnx.AttributeProto) -> Any:
    fields = {AttributeProto.INTS: "ints", AttributeProto.FLOATS: "floats", AttributeProto.STRINGS: "strings"}
    return getattr(attribute, fields[attribute.type])


def _change_length(elements: list[Any], rng: random.Random) -> list[Any]:
    kind = rng.randrange(5)
    if kind == 0 or not elements:
        return [*elements, elements[-1] if elements else 1]
    if kind == 1:
        return elements[:-1]
    if kind == 2:
        return elements[1:]
    return elements * 2 if kind == 3 else [*elements, *elements[:2]]


def _change_element(elements: list[Any], rng: random.Random) -> list[Any]:
    changed = list(elements)
    position = rng.randrange(len(changed))
    number = rng.choice((*NUMBERS, *changed))
    changed[position] = -changed[position] if rng.random() < 0.3 else number
    return changed


def _change_list_length(model: onnx.ModelProto, node: onnx.NodeProto, rng: random.Random) -> bool:
    found = _list_attributes(node, (AttributeProto.INTS, AttributeProto.FLOATS, AttributeProto.STRINGS))
    if not found:
        return False
    values = _elements_of(rng.choice(found))
    elements = _change_length(list(values), rng)
    del values[:]
    try:
        values.extend(elements)
    except TypeError:  # an empty list of strings has no elements to change
        values.append(b"x")
    return True


def _change_list_element(model: onnx.ModelProto, node: onnx.NodeProto, rng: random.Random) -> bool:
    found = [
        each
        for each in _list_attributes(node, (AttributeProto.INTS, AttributeProto.FLOATS))
        if _elements_of(each)
    ]
    if not found:
        return False
    values = _elements_of(rng.choice(found))
    elements = _change_element(list(values), rng)
    del values[:]
    values.extend(elements)
    return True


def _change_integer(model: onnx.ModelProto, node: onnx.NodeProto, rng: random.Random) -> bool:
    found = _list_attributes(node, (AttributeProto.INT,))
    if found:
        attribute = rng.choice(found)
        attribute.i = -attribute.i if rng.random() < 0.2 else rng.choice(NUMBERS)
    return bool(found)


def _change_number(model: onnx.ModelProto, node: onnx.NodeProto, rng: random.Random) -> bool:
    found = _list_attributes(node, (AttributeProto.FLOAT,))
    if found:
        rng.choice(found).f = float(rng.choice(NUMBERS))
    return bool(found)


def _change_string(model: onnx.ModelProto, node: onnx.NodeProto, rng: random.Random) -> bool:
    found = _list_attributes(node, (AttributeProto.STRING,))
    if not found:
        return False
    attribute = rng.choice(found)
    text = attribute.s.decode("utf-8", "replace")
    position = rng.randrange(len(text) + 1)
    shorter, longer = text[:position] + text[position + 1 :], text[:position] + "i" + text[position:]
    attribute.s = rng.choice((*STRINGS, text.lower(), shorter, shorter, longer, longer)).encode()
    return True


def _remove_attribute(model: onnx.ModelProto, node: onnx.NodeProto, rng: random.Random) -> bool:
    if node.attribute:
        del node.attribute[rng.randrange(len(node.attribute))]
        return True
    return False


def _add_attribute(model: onnx.ModelProto, node: onnx.NodeProto, rng: random.Random) -> bool:
    name, value = rng.choice((("axis", 0), ("axes", [0]), ("to", 99), ("alpha", 1.0), ("unknown", 1)))
    if node.attribute and rng.random() < 0.2:
        node.attribute.add().CopyFrom(rng.choice(node.attribute))
    else:
        node.attribute.append(helper.make_attribute(name, value))
    return True


def _change_attribute_type(model: onnx.ModelProto, node: onnx.NodeProto, rng: random.Random) -> bool:
    if not node.attribute:
        return False
    attribute = rng.choice(node.attribute)
    value = rng.choice((1, 1.0, "x", [1], [1.0], ["x"]))
    attribute.CopyFrom(helper.make_attribute(attribute.name, value))
    return True


def _change_shape(model: onnx.ModelProto, node: onnx.NodeProto, rng: random.Random) -> bool:
    """Change the rank, or one size, of an input."""
    found = [each for each in model.graph.input if each.name in node.input and _has_shape(each)]
    if not found:
        return _change_constant_shape(model, node, rng)
    dims = rng.choice(found).type.tensor_type.shape.dim
    sizes = [each.dim_value if each.HasField("dim_value") else None for each in dims]
    position = rng.randrange(len(sizes) + 1)
    kind = rng.randrange(6)
    if kind < 2 or not sizes:
        sizes.insert(position, rng.choice((1, 1, 2, 3)))
    elif kind == 2:
        del sizes[position % len(sizes)]
    elif kind == 3:
        sizes = list(rng.choice(((), (3,), (2, 3))))
    else:
        sizes[position % len(sizes)] = rng.choice((0, 1, 2, 5, 7, 8))
    del dims[:]
    for size in sizes:
        dims.add(**{} if size is None else {"dim_value": size})
    return True


def _has_shape(value: onnx.ValueInfoProto) -> bool:
    return bool(value.type.HasField("tensor_type") and value.type.tensor_type.HasField("shape"))


def _constant_inputs(model: onnx.ModelProto, node: onnx.NodeProto) -> list[onnx.TensorProto]:
    return [each for each in model.graph.initializer if each.name in node.input]


def _change_constant_shape(model: onnx.ModelProto, node: onnx.NodeProto, rng: random.Random) -> bool:
    """Change the rank or the number of elements of a constant."""
    found = _constant_inputs(model, node)
    if not found:
        return False
    tensor = rng.choice(found)
    array = numpy_helper.to_array(tensor)
    kind = rng.randrange(4)
    if kind == 0:
        array = array.reshape((1, *array.shape))
    elif kind == 1 or not array.ndim:
        array = array.reshape(-1)[:1].reshape(rng.choice(((), (1,), (1, 1))) if array.size else (0, 1))
    else:
        length = len(array)
        array = array[1:] if kind == 2 else np.concatenate([array, array[: max(1, min(2, length))]])
    tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), tensor.name))
    return True


def _change_constant_element(model: onnx.ModelProto, node: onnx.NodeProto, rng: random.Random) -> bool:
    found = [each for each in _constant_inputs(model, node) if each.data_type in (1, 6, 7) and all(each.dims)]
    if not found:
        return False
    tensor = rng.choice(found)
    array = numpy_helper.to_array(tensor)
    elements = _change_element(array.reshape(-1).tolist(), rng)
    changed = np.array(elements, array.dtype).reshape(array.shape)
    tensor.CopyFrom(numpy_helper.from_array(changed, tensor.name))
    return True


def _change_input_type(model: onnx.ModelProto, node: onnx.NodeProto, rng: random.Random) -> bool:
    found = [each for each in model.graph.input if each.name in node.input and _has_shape(each)]
    if found:
        rng.choice(found).type.tensor_type.elem_type = rng.choice(TYPES)
    return bool(found)


def _change_output_type(model: onnx.ModelProto, node: onnx.NodeProto, rng: random.Random) -> bool:
    found = [each for each in model.graph.output if each.type.HasField("tensor_type")]
    if found:
        rng.choice(found).type.tensor_type.elem_type = rng.choice(TYPES)
    return bool(found)


def _change_inputs(model: onnx.ModelProto, node: onnx.NodeProto, rng: random.Random) -> bool:
    """Remove, omit, repeat, add or swap inputs."""
    names = list(node.input)
    position = rng.randrange(len(names) + 1)
    kind = rng.randrange(5)
    if kind == 0 or not names:
        names.insert(position, names[0] if names else "")
    elif kind == 1:
        names[position % len(names)] = ""
    elif kind == 2:
        del names[position % len(names)]
    elif kind == 3:
        names.append(rng.choice(names))
    else:
        rng.shuffle(names)
    del node.input[:]
    node.input.extend(names)
    return True


def _change_outputs(model: onnx.ModelProto, node: onnx.NodeProto, rng: random.Random) -> bool:
    """Remove, omit or add outputs."""
    kind = rng.randrange(4)
    if kind == 0:
        node.output.append("added")
    elif kind == 1:
        node.output.insert(0, "")
    elif node.output:
        removed = list(node.output) if kind == 2 else [node.output[-1]]
        del node.output[len(node.output) - len(removed) :]
        kept = [each for each in model.graph.output if each.name not in removed]
        del model.graph.output[:]
        model.graph.output.extend(kept)
    return True


def _change_operator(model: onnx.ModelProto, node: onnx.NodeProto, rng: random.Random) -> bool:
    node.op_type = rng.choice(IDENTIFIERS)
    return True


def _change_opset(model: onnx.ModelProto, node: onnx.NodeProto, rng: random.Random) -> bool:
    for each in model.opset_import:
        if each.domain == node.domain:
            each.version = rng.choice((0, 1, 5, 9, 11, 13, 18, 23)) if not each.domain else 0
            return True
    return False


MUTATIONS: tuple[Mutation, ...] = (
    _change_list_length, _change_list_element, _change_integer, _change_number, _change_string,
    _remove_attribute, _add_attribute, _change_attribute_type, _change_shape, _change_constant_shape,
    _change_constant_element, _change_input_type, _change_output_type, _change_inputs, _change_outputs,
    _change_operator, _change_opset,
)  # fmt: skip

WEIGHTS = (12, 12, 12, 4, 4, 3, 2, 2, 16, 8, 8, 3, 1, 6, 3, 1, 2)
"""Weights of the mutations: most faults are in lists, numbers and ranks."""

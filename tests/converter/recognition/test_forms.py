"""Forms in definitions compute what the operator computes: the numeric proof of each alternative."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.execution import Array, op_types, run

import opshift
from opshift.converter.recognition.forms import form_patterns
from opshift.converter.recognition.patterns import (
    FUNCTIONS,
    AnyValue,
    Constant,
    Hole,
    InputRef,
    NodeRef,
    Pattern,
)

REGISTRY = opshift.default_registry()
FIRST_OPSET = 7
"""Oldest opset that onnxruntime supports."""
RANDOM = np.random.default_rng(0)
SIZES = {"B": 2, "L": 3, "S": 4, "E": 5, "F": 6, "H": 4, "G": 2, "R": 2, "q_num_heads": 2, "kv_num_heads": 2,
    "N": 2, "C": 4, "W": 3, "num_groups": 2,
}  # fmt: skip
VALUES = {"epsilon": 1e-3, "scale": 0.4, "alpha": 1.0, "axis": 1}
"""Attributes of the tested nodes."""

SPECIAL = np.array([-np.inf, -90, -1e-30, -0.0, 0, 1e-30, 3, 90, np.inf, np.nan], np.float32)


def patterns() -> Iterator[Any]:
    """Yield the pattern of each alternative, with each operator version that has it."""
    for operator in REGISTRY.operators("ai.onnx"):
        for index, pattern in enumerate(form_patterns(operator, REGISTRY)):
            marks = [] if index < 2 else [pytest.mark.full]
            for version in pattern.versions:
                yield pytest.param(pattern, version, id=f"{operator.name}:{version} {index}", marks=marks)


def size_of(term: int | str) -> int:
    """Return the size that a term of a shape stands for."""
    factors = [each.rstrip("?") for each in str(term).split(" * ")]
    return int(np.prod([SIZES.get(each) or (7 if each == "_" else int(each)) for each in factors]))


def inputs_of(pattern: Pattern) -> dict[int, Array]:
    """Return random inputs of a pattern, with the shapes that it requires."""
    refs = {ref for node in pattern.nodes for ref in node.slots.values() if isinstance(ref, InputRef)}
    shapes = {ref.position: dims for ref, dims in pattern.shapes if isinstance(ref, InputRef)}
    found = {}
    for ref in sorted(refs):
        default = (3, 8) if ref.position == 0 else (8,)
        given = shapes.get(ref.position)
        if given is not None and given[1] == "_":  # the length, which follows from the other sizes
            given = (given[0], "S" if ref.position else "L", *given[2:])
        dims = default if given is None else tuple(map(size_of, given))
        found[ref.position] = RANDOM.standard_normal(dims).astype(np.float32)
    return found


class Builder:
    """Model with the nodes of a pattern; its shapes are the targets of Reshapes and Expands."""

    def __init__(self, pattern: Pattern, version: int) -> None:
        self.pattern = pattern
        self.opset = max(version, FIRST_OPSET)
        self.initializers: list[onnx.TensorProto] = []

    def model(self, inputs: Mapping[int, Array]) -> onnx.ModelProto:
        nodes = [self._node(index) for index in range(len(self.pattern.nodes))]
        constants = self.pattern.flattened
        self.initializers += [numpy_helper.from_array(inputs[i], f"in{i}") for i in constants]
        values = [
            helper.make_tensor_value_info(f"in{i}", TensorProto.FLOAT, each.shape)
            for i, each in inputs.items()
            if i not in constants
        ]
        output = self._name(self.pattern.outputs[0])
        outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)]
        graph = helper.make_graph(nodes, "g", values, outputs, self.initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)

    def _name(self, ref: InputRef | NodeRef) -> str:
        return f"in{ref.position}" if isinstance(ref, InputRef) else f"v{ref.node}"

    def _node(self, index: int) -> onnx.NodeProto:
        node = self.pattern.nodes[index]
        version = REGISTRY.at(node.op_type, self.opset)
        assert version is not None
        names, attributes = [], {}
        for slot, ref in node.slots.items():
            is_input = any(each.name == slot.partition(":")[0] for each in version.inputs)
            if isinstance(ref, InputRef | NodeRef):
                names.append(self._name(ref))
            elif isinstance(ref, AnyValue):
                names.append(self._constant(self._shape(index), np.int64))
            elif is_input:
                values = self._values(ref)
                is_integer = all(isinstance(each, int) for each in values)
                is_list = slot in ("axes", "shape") or ref.is_filled
                dtype = np.int64 if is_integer else np.float32
                names.append(self._constant(values if is_list else values[0], dtype))
            else:
                values = self._values(ref)
                attributes[slot] = values if slot in ("axes", "perm") else values[0]
        return helper.make_node(node.op_type, names, [f"v{index}"], **attributes)

    def _values(self, constant: Constant) -> list[Any]:
        assert constant.elements is not None
        count = SIZES["num_groups"] if constant.is_filled else 1
        return count * [
            FUNCTIONS[each.function].apply(VALUES[each.attribute]) if isinstance(each, Hole) else each
            for each in constant.elements
        ]

    def _shape(self, index: int) -> list[int]:
        found = next((dims for ref, dims in self.pattern.shapes if ref == NodeRef(index, 0)), None)
        if found is None:  # a Reshape of flat keys
            return [-1, SIZES["S"], SIZES["E"]]
        rest = 1 if self.pattern.nodes[index].op_type == "Expand" else -1
        return [rest if each == "_" else size_of(each) for each in found]

    def _constant(self, value: Any, dtype: Any) -> str:
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name


@pytest.mark.every_case
@pytest.mark.parametrize(("pattern", "version"), list(patterns()))
def test_form_computes_operator(pattern: Pattern, version: int) -> None:
    inputs = inputs_of(pattern)
    model = Builder(pattern, version).model(inputs)
    feeds = {f"in{i}": each for i, each in inputs.items() if i not in pattern.flattened}
    converted = opshift.convert_version(model, recognize=pattern.operator, allow="approximate")
    assert op_types(converted) == [pattern.operator]
    np.testing.assert_allclose(run(model, feeds)[0], run(converted, feeds)[0], rtol=2e-5, atol=2e-6)


def test_form_of_newer_version_is_not_used() -> None:
    """GroupNormalization has a scale and bias of each channel since version 21, before of each group."""
    operator = REGISTRY.operator("GroupNormalization")
    assert operator is not None
    (pattern,) = form_patterns(operator, REGISTRY)
    model = Builder(pattern, 20).model(inputs_of(pattern))
    converted = opshift.convert_version(model, recognize=pattern.operator, allow="approximate")
    assert op_types(converted) == op_types(model)


@pytest.mark.parametrize("name", ["Gelu", "HardSwish", "Swish"])
def test_elementwise_forms_agree_on_special_values(name: str) -> None:
    operator = REGISTRY.operator(name)
    assert operator is not None
    pattern = next(iter(form_patterns(operator, REGISTRY)))
    model = Builder(pattern, pattern.versions[-1]).model({0: SPECIAL})
    converted = opshift.convert_version(model, recognize=name, allow="approximate")
    expected, found = run(model, {"in0": SPECIAL})[0], run(converted, {"in0": SPECIAL})[0]
    finite = np.isfinite(SPECIAL)
    np.testing.assert_allclose(expected[finite], found[finite], rtol=1e-5, atol=1e-30)


@pytest.mark.every_case
@pytest.mark.parametrize(
    "operator", [pytest.param(each, id=each.name) for each in REGISTRY.operators("ai.onnx") if each.recognize]
)
def test_form_has_a_source(operator: Any) -> None:
    assert all(form.source and form.rounding for form in operator.recognize)

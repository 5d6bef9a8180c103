"""Operators for onnx.reference that call the Python references of private domains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from opshift.analysis.verification.numpy_types import array_element_type
from opshift.analysis.verification.reference_runtime import executed_graphs
from opshift.analysis.verification.references import REFERENCES
from opshift.model.extensions import FAILURES, extension_failed
from opshift.model.messages import ModelProto
from opshift.model.operator_ids import (
    LocalFunction,
    called_function,
    canonical_domain,
    function_id,
    overload_of,
)
from opshift.registry.models import OperatorVersion, Parameter
from opshift.registry.registry import Registry

if TYPE_CHECKING:
    from onnx import NodeProto, TypeProto


class ReferenceRaises(Exception):
    """A reference raises an exception, possibly because it does not accept the generated inputs."""


def evaluator(model: ModelProto, registry: Registry) -> ReferenceEvaluator:
    """Return an evaluator that also runs Python references; adds attribute defaults to calls in the model."""
    fields = {"op_schema": None, "registry": registry}

    class Evaluator(ReferenceEvaluator):  # type: ignore[misc]  # mypy does not read the types of onnx
        """Evaluator that runs the operators in `REFERENCES` with opshift's Python references."""

        def _load_impl(self, node: NodeProto, input_types: TypeProto | None = None) -> object:
            # onnx itself runs function calls, and operator versions without a Python reference
            opset = self.opsets_.get(node.domain, 0)
            domain = canonical_domain(node.domain)
            operator = registry.known_at(node.op_type, opset, domain)
            is_call = LocalFunction(domain, node.op_type, overload_of(node)) in functions
            if operator is None or operator.id not in REFERENCES or is_call:
                return super()._load_impl(node, input_types)
            return type(node.op_type, (_ReferenceOperator,), {**fields, "op_domain": node.domain})

    functions = {function_id(each) for each in model.functions}
    _add_default_attributes(model)
    return Evaluator(model)


def _add_default_attributes(model: ModelProto) -> None:
    """Add the defaults of a function's attributes to its calls, because onnx.reference ignores them."""
    defaults = {function_id(function): function.attribute_proto for function in model.functions}
    for part in executed_graphs(model):
        for node in part.container.node:
            given = {each.name for each in node.attribute}
            declared = defaults.get(called_function(node), ())
            node.attribute.extend(each for each in declared if each.name not in given)


class _ReferenceOperator(OpRun):  # type: ignore[misc]  # onnx has no types
    """Node that calls the reference of its operator version."""

    registry: Registry

    def __init__(self, onnx_node: NodeProto, run_params: Mapping[str, Mapping[str, int]]) -> None:
        # Unlike the base class, do not store node attributes on `self`: their names may hide methods.
        self.onnx_node, self.run_params, self.has_subgraph = onnx_node, run_params, False
        self.has_linked_attribute = any(each.ref_attr_name for each in onnx_node.attribute)

    def _run(self, *inputs: object, **attributes: object) -> tuple[object, ...]:
        """Define the abstract method of the base class; `run` replaces its only caller."""
        raise AssertionError("`run` does not call this method")

    def run(
        self, *inputs: object, linked_attributes: Mapping[str, object] | None = None, **unused: object
    ) -> tuple[object, ...]:
        """Return the outputs of the node; raise ReferenceRaises or ExtensionFailed."""
        node = self.onnx_node
        domain = canonical_domain(node.domain)
        version = self.registry.get_schema(node.op_type, self.run_params["opsets"][node.domain], domain)
        linked = linked_attributes or {}
        given = {
            each.name: _plain_numbers(
                linked[each.ref_attr_name] if each.ref_attr_name else self._extract_attribute_value(each)
            )
            for each in node.attribute
            if not each.ref_attr_name or each.ref_attr_name in linked
        }
        return call_reference(version, inputs, given, node.output)


def _plain_numbers(value: object) -> object:
    """Convert NumPy scalars to Python numbers, which keep the type of an array in arithmetic."""
    if isinstance(value, list):
        return [_plain_numbers(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value


def call_reference(
    version: OperatorVersion, inputs: Sequence[object], given: Mapping[str, object], outputs: Iterable[str]
) -> tuple[object, ...]:
    """Return the outputs that the reference of an operator version computes for a node.

    Raises:
        ReferenceRaises: the reference raises an exception.
        ExtensionFailed: a result is missing, or does not have the type that the definition declares.
    """
    function = REFERENCES[version.id]
    attributes = {name: given.get(name, each.default) for name, each in version.attributes.items()}
    # a reference may modify its inputs, which other nodes read
    copies = [each.copy() if isinstance(each, np.ndarray) else each for each in inputs]
    label = f"reference {version.id}"
    try:
        results = function(*copies, **attributes)
    except FAILURES as error:
        failed = extension_failed(label, function, error)
        raise ReferenceRaises(f"{failed.reason} ({failed.place})") from error
    found = results if isinstance(results, tuple) else (results,)
    for position, name in enumerate(outputs):
        result = found[position] if position < len(found) else None
        problem = _result_problem(version, position, result, inputs) if name else ""
        if problem:
            raise extension_failed(label, function, problem)
    return tuple(np.asarray(each) if isinstance(each, np.generic) else each for each in found)


def _result_problem(version: OperatorVersion, position: int, result: object, inputs: Sequence[object]) -> str:
    parameter = version.outputs[min(position, len(version.outputs) - 1)]
    types = _expected_types(version, parameter, inputs)
    if not isinstance(result, np.ndarray | np.generic):
        kinds = {each.partition("(")[0] for each in types}
        is_sequence = isinstance(result, list) and "seq" in kinds
        return "" if is_sequence else f"returns {type(result).__name__} for {parameter.name}, not an array"
    found = f"tensor({array_element_type(np.asarray(result))})"
    return "" if found in types else f"returns {found} for {parameter.name}, not {' or '.join(types)}"


def _expected_types(
    version: OperatorVersion, parameter: Parameter, inputs: Sequence[object]
) -> tuple[str, ...]:
    """Return the types that an output may have: that of an input with the same type variable, else all."""
    for position, value in enumerate(inputs):
        formal = version.inputs[min(position, len(version.inputs) - 1)]
        if formal.type == parameter.type and formal.homogeneous and isinstance(value, np.ndarray):
            return (f"tensor({array_element_type(value)})",)
    return version.types_of(parameter)

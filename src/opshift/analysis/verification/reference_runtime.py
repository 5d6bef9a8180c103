"""onnx.reference: operators that it does not evaluate, and Python references of private domains.

For many operators it implements only the newest version, and evaluates older nodes as that version, even if
the meaning has changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from opshift.analysis.verification.numpy_types import array_element_type
from opshift.analysis.verification.references import REFERENCES
from opshift.inference.constants import read_constant_node
from opshift.model.extensions import FAILURES, extension_failed
from opshift.model.graphs import ContainerProto, graphs_of
from opshift.model.messages import ModelProto
from opshift.model.node import Node, Tensor
from opshift.model.operator_ids import (
    DEFAULT_DOMAIN,
    called_function,
    canonical_domain,
    function_id,
    model_domain,
    opset_imports,
)
from opshift.model.tensors import read_tensor
from opshift.registry.models import OperatorVersion, Parameter
from opshift.registry.registry import Registry
from opshift.registry.steps import IgnoreAttribute, StepAction

if TYPE_CHECKING:
    from onnx import NodeProto


_VERSION_SUFFIX = re.compile(r"_(\d+)$")


def unsupported_operators(model: ModelProto, registry: Registry) -> Iterator[str]:
    """Yield a reason for each operator that is evaluated as a newer version with a different meaning.

    Operators of private domains need a Python reference.
    """
    functions = {(canonical_domain(each.domain), each.name) for each in model.functions}
    calls = {
        (canonical_domain(node.domain), node.op_type, part.opsets.get(canonical_domain(node.domain), 0))
        for part in executed_graphs(model)
        for node in part.container.node
    }
    for domain, op_type, opset in sorted(calls):
        operator = registry.known_at(op_type, opset, domain)
        if operator is None or (domain, op_type) in functions or operator.id in REFERENCES:
            continue
        if registry.releases.newest_opset(domain) is None:
            yield f"{operator.id} has no Python reference"
        else:
            yield from _changed_meanings(operator, _implemented_version(operator, opset), registry)


def _changed_meanings(operator: OperatorVersion, implemented: int, registry: Registry) -> Iterator[str]:
    history = registry.operator(operator.name, operator.domain)
    assert history is not None
    for version in history.versions:
        is_between = operator.since_version < version.since_version <= implemented
        if is_between and version.step is not None and not _is_equivalent(version.step.up):
            yield f"it evaluates {operator.id} as version {version.since_version}, which means something else"


def _is_equivalent(up: StepAction | None) -> bool:
    """Return whether every node of the older version has the same results in the newer one."""
    if isinstance(up, tuple):
        return all(isinstance(verb, IgnoreAttribute) for verb in up)
    return up in (None, "compatible")


def _implemented_version(operator: OperatorVersion, opset: int) -> int:
    """Return the version that the implementation evaluates."""
    if operator.domain != DEFAULT_DOMAIN:
        return _newest_version(operator)
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.ops import load_op

    try:
        name = load_op("", operator.name, opset, evaluator_cls=ReferenceEvaluator).__name__
    except Exception:  # missing, or dependent on the node: loading the model fails if it is missing
        return operator.since_version
    if name == "<lambda>":  # evaluates the function body of this version
        return operator.since_version
    match = _VERSION_SUFFIX.search(name)
    return int(match[1]) if match else _newest_version(operator)


def _newest_version(operator: OperatorVersion) -> int:
    """Return the newest version that the installed onnx knows: it cannot implement unreleased ones."""
    from onnx.defs import SchemaError, get_schema

    try:
        return int(get_schema(operator.name, model_domain(operator.domain)).since_version)
    except SchemaError:
        return operator.since_version


class ExecutedGraph(NamedTuple):
    """Graph or function, its opset imports, and the enclosing graph."""

    container: ContainerProto
    opsets: Mapping[str, int]
    outer: ExecutedGraph | None = None

    def constant(self, name: str) -> Tensor | None:
        """Return the value of a Constant node, or of an initializer that callers cannot override."""
        for initializer in getattr(self.container, "initializer", ()):
            if initializer.name == name:
                is_default = any(getattr(value, "name", value) == name for value in self.container.input)
                return None if is_default else read_tensor(initializer)
        for node in self.container.node:
            if name in node.output:
                return read_constant_node(Node.from_proto(node)) if node.op_type == "Constant" else None
        return self.outer.constant(name) if self.outer else None


def executed_graphs(model: ModelProto) -> Iterator[ExecutedGraph]:
    """Yield the main graph, the functions, and all subgraphs."""
    opsets = opset_imports(model.opset_import, model.ir_version)
    pending = [ExecutedGraph(model.graph, opsets)]
    for function in model.functions:
        imports = function.opset_import or model.opset_import
        pending.append(ExecutedGraph(function, opset_imports(imports, model.ir_version)))
    while pending:
        part = pending.pop()
        yield part
        for node in part.container.node:
            pending += [ExecutedGraph(graph, part.opsets, part) for graph in graphs_of(node)]


class ReferenceRaises(Exception):
    """A reference raises an exception, possibly because it does not accept the generated inputs."""


def evaluator(model: ModelProto, registry: Registry) -> ReferenceEvaluator:
    """Return an evaluator of a model that knows the operators with references; it changes the model."""
    names = dict.fromkeys((each.domain, each.op_type) for each in REFERENCES)
    operators = [
        type(name, (_ReferenceOperator,), {"op_schema": None, "op_domain": domain, "registry": registry})
        for domain, name in names
    ]

    class Evaluator(ReferenceEvaluator):  # type: ignore[misc]  # mypy does not read the types of onnx
        def __init__(self, proto: object, **options: object) -> None:
            # an evaluator does not pass its operators on to those of functions, which have its class
            super().__init__(proto, **{**options, "new_ops": operators})

    _add_default_attributes(model)
    return Evaluator(model)


def _add_default_attributes(model: ModelProto) -> None:
    """Add the defaults of a function's attributes to its calls, because evaluators ignore them."""
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
        # Unlike the base class, set no attribute of the node on `self`, where it may replace a method.
        self.onnx_node, self.run_params, self.has_subgraph = onnx_node, run_params, False
        self.has_linked_attribute = any(each.ref_attr_name for each in onnx_node.attribute)

    def _run(self, *inputs: object, **attributes: object) -> tuple[object, ...]:
        raise AssertionError("unreachable: `run` replaces it")

    def run(
        self, *inputs: object, linked_attributes: Mapping[str, object] | None = None, **unused: object
    ) -> tuple[object, ...]:
        """Return the outputs of the node; raise ReferenceRaises or ExtensionFailed."""
        node = self.onnx_node
        domain = canonical_domain(node.domain)
        version = self.registry.get_schema(node.op_type, self.run_params["opsets"][node.domain], domain)
        linked = linked_attributes or {}
        given = {
            each.name: _plain(
                linked[each.ref_attr_name] if each.ref_attr_name else self._extract_attribute_value(each)
            )
            for each in node.attribute
            if not each.ref_attr_name or each.ref_attr_name in linked
        }
        return call_reference(version, inputs, given, node.output)


def _plain(value: object) -> object:
    """Return numpy scalars as Python numbers, which do not change the type of the arrays they scale."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
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
        problem = _problem(version, position, result, inputs) if name else ""
        if problem:
            raise extension_failed(label, function, problem)
    return tuple(np.asarray(each) if isinstance(each, np.generic) else each for each in found)


def _problem(version: OperatorVersion, position: int, result: object, inputs: Sequence[object]) -> str:
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
    """Return the types that an output may have for the types of some inputs."""
    for position, value in enumerate(inputs):
        formal = version.inputs[min(position, len(version.inputs) - 1)]
        if formal.type == parameter.type and formal.homogeneous and isinstance(value, np.ndarray):
            return (f"tensor({array_element_type(value)})",)
    return version.types_of(parameter)

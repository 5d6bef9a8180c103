"""Run the nodes of a model one by one in a runtime, to find those that it refuses or computes wrongly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime
import yaml
from onnx import TensorProto, helper, numpy_helper

from comparison.differences import difference
from comparison.native_types import with_native_types
from comparison.reference_faults import has_reference_fault
from measurement.change_types import with_types
from measurement.describe import definition_of, describe
from measurement.fold import wrong_results
from measurement.probes import probe_of
from measurement.run_models import Outcome, Worker
from opshift.converter.convert import convert_version
from opshift.inference.facts import InferenceScope
from opshift.inference.root_scopes import graph_scopes
from opshift.model.element_types import BY_NAME
from opshift.model.errors import OpshiftError
from opshift.model.graphs import captured_names, graphs_of
from opshift.model.messages import ModelProto
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.model.types import short_type
from opshift.registry.registry import default_registry
from opshift.registry.runtimes.files import get_runtime
from opshift.registry.runtimes.runtime import Runtime
from opshift.runtimes.check_support import RuntimeCheck
from opshift.runtimes.model_nodes import ModelNodes
from random_graphs.execution import CannotRun, run_in_onnxruntime, run_in_reference

REPEATABLE = ("AffineGrid", "If", "Loop", "Scan", "SequenceMap")
"""Operators that ONNX declares non-deterministic, although all runs of a chain have equal outputs."""

OTHER_FLOATS = ("bfloat16", "double", "float16")
"""Float types in which a reference may lack an operator that it has in float."""


class MeasuredNode(NamedTuple):
    """Node of a model, and its outcome in a runtime if it gets the inputs that the reference computes.

    Attributes:
        outcome: `equal`, `differs`, or that of a worker.
        model: a model with this node only.
        is_recorded: whether the data about the runtime has its wrong results.
    """

    outcome: Outcome
    model: bytes
    is_recorded: bool

    def __str__(self) -> str:
        """Return a text such as `ai.onnx.Add:14(T: float) differs`."""
        described = describe(ModelProto.FromString(self.model))
        if described is None:
            return self.outcome.outcome
        types = ", ".join(f"{name}: {short_type(each)}" for name, each in described.types.items())
        record = ", recorded" if self.is_recorded else ""
        return f"{described.operator}({types}) {self.outcome.outcome}{record}"


def wrong_text(name: str, nodes: Sequence[MeasuredNode]) -> str:
    """Return the wrong results that are missing in the data about a runtime, in the format of its file."""
    probes = [(probe_of(ModelProto.FromString(each.model), {}, name), each) for each in nodes]
    lacking = {
        str(probe.described.operator)
        for probe, each in probes
        if probe and each.outcome.outcome == "differs" and not each.is_recorded
    }
    measured = [
        (probe, each.outcome) for probe, each in probes if probe and str(probe.described.operator) in lacking
    ]
    found = {}
    for group in sorted(lacking):
        rows = wrong_results([each for each in measured if str(each[0].described.operator) == group])
        conditions = [row for each in rows.values() for row in each]
        found[group] = conditions or "the results of some nodes are wrong"
    return yaml.safe_dump({f"wrong in {name}": found}, width=200) if found else ""


def measure_nodes(
    model: onnx.ModelProto, feeds: Mapping[str, Any], runtime: Runtime, worker: Worker, tolerance: float
) -> Iterator[MeasuredNode]:
    """Run the nodes of the main graph one by one in a runtime, with the inputs that the reference computes.

    Constants and random nodes are skipped, and nodes that no reference runs, or whose values are not tensors.
    """
    check = RuntimeCheck(runtime)
    for single in _single_nodes(model, feeds):
        outcome, found = worker.outputs(single.native.SerializeToString(), single.native_feeds)
        if outcome.outcome == "runs":
            problem = difference(found, single.expected, tolerance)
            outcome = Outcome("differs" if problem else "equal", problem)
        content = single.model.SerializeToString()
        warnings = check.check(ModelNodes(ModelProto.FromString(content), default_registry())).warnings
        yield MeasuredNode(outcome, content, bool(warnings))


def conflicting_node(model: onnx.ModelProto, feeds: Mapping[str, Any], tolerance: float) -> str:
    """Return a node that both references run, with different outputs; empty without such a node.

    If one of them has no kernel for a float type, both run the node in float. A node that onnxruntime
    does not run counts if onnx.reference is known to compute it wrongly.
    """
    for single in _single_nodes(model, feeds):
        results = _results(single.native, single.native_feeds)
        if len(results) < len(REFERENCES) and (floats := _in_float(single)):
            results = _results(*floats)
        is_wrong = len(results) < len(REFERENCES) and single.has_reference_fault
        if is_wrong or any(difference(each, results[0], tolerance) for each in results[1:]):
            content = single.model.SerializeToString()
            return str(MeasuredNode(Outcome("differs"), content, is_recorded=False))
    return ""


REFERENCES = (run_in_reference, run_in_onnxruntime)


def _results(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[list[Any]]:
    """Return the outputs of a model in each reference that can run it."""
    found = []
    for run in REFERENCES:
        with suppress(CannotRun):
            found.append(run(at_known_opset(model) if run is run_in_onnxruntime else model, feeds))
    return found


def at_known_opset(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model at the newest opset of the installed onnxruntime, unless its nodes change there."""
    newest = get_runtime(f"onnxruntime-{onnxruntime.__version__}").opsets[DEFAULT_DOMAIN]
    opsets = {canonical_domain(each.domain): each.version for each in model.opset_import}
    if opsets.get(DEFAULT_DOMAIN, 0) <= newest:
        return model
    lowered = onnx.ModelProto.FromString(model.SerializeToString())
    del lowered.functions[:]  # Functions have their own opsets, and models that call them do not run here.
    with suppress(OpshiftError):
        lowered = convert_version(lowered, newest)
    return lowered if list(lowered.graph.node) == list(model.graph.node) else model


def _in_float(single: SingleNode) -> tuple[onnx.ModelProto, dict[str, Any]] | None:
    """Return the model with float in place of other float types; `None` if it has only float."""
    described = describe(ModelProto.FromString(single.model.SerializeToString()))
    types = {} if described is None else {name: short_type(each) for name, each in described.types.items()}
    changed = {name: "tensor(float)" for name, each in types.items() if each in OTHER_FLOATS}
    if described is None or not changed:
        return None
    content = ModelProto.FromString(single.model.SerializeToString())
    model = with_types(content, definition_of(described.operator), changed)
    if model is None:
        return None
    numbers = {each.name: each.type.tensor_type.elem_type for each in model.graph.input}
    fed = {
        name: np.asarray(each).astype(np.float32) if numbers[name] == TensorProto.FLOAT else each
        for name, each in single.feeds.items()
    }
    return with_native_types(onnx.ModelProto.FromString(model.SerializeToString()), fed)


class SingleNode(NamedTuple):
    """A model with one node, also with native types, its feeds, and its outputs in a reference."""

    model: onnx.ModelProto
    feeds: dict[str, Any]
    native: onnx.ModelProto
    native_feeds: dict[str, Any]
    expected: list[Any]

    @property
    def has_reference_fault(self) -> bool:
        """Whether onnx.reference is known to compute the node wrongly."""
        constants = {each.name: numpy_helper.to_array(each) for each in self.model.graph.initializer}
        return has_reference_fault(self.model.graph.node[0], {**constants, **self.feeds})


def _single_nodes(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> Iterator[SingleNode]:
    """Yield the nodes of the main graph; `measure_nodes` describes which nodes it skips."""
    scope = next(graph_scopes(ModelProto.FromString(model.SerializeToString()), default_registry()))[0]
    values: dict[str, Any] = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    values |= feeds
    for node in model.graph.node:
        single = _single(model, node, values, scope)
        if single is None:
            continue
        native, fed = with_native_types(*single)
        expected = _run(native, fed)
        if expected is None:
            continue
        values |= zip(filter(None, node.output), expected, strict=True)
        operator = scope.operator(node.op_type, node.domain)
        is_random = operator and operator.determinism == "non_deterministic"
        if node.op_type == "Constant" or (is_random and node.op_type not in REPEATABLE):
            continue
        yield SingleNode(*single, native, fed, expected)


def _run(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[Any] | None:
    """Return the outputs of a model in a reference; `None` if no reference runs it."""
    for run in (run_in_onnxruntime, run_in_reference):
        with suppress(CannotRun):
            return run(model, feeds)
    return None


def _number(name: str, scope: InferenceScope) -> int:
    """Return the number of the element type of a tensor; 0 if it is unknown, or the value is not a tensor."""
    found = BY_NAME.get(scope.element_type(name) or "")
    return found.number if found else 0


def _single(
    model: onnx.ModelProto, node: onnx.NodeProto, values: Mapping[str, Any], scope: InferenceScope
) -> tuple[onnx.ModelProto, dict[str, Any]] | None:
    """Return a model with one node, and its inputs; `None` if a value is not a tensor."""
    constants = {each.name: each for each in model.graph.initializer}
    for each in model.graph.node:
        if each.op_type == "Constant" and each.attribute[0].name == "value":
            constants[each.output[0]] = each.attribute[0].t
    inputs, initializers, fed = [], [], {}
    read = {*filter(None, node.input), *(name for each in graphs_of(node) for name in captured_names(each))}
    for name in sorted(read):
        if name in constants:
            tensor = onnx.TensorProto.FromString(constants[name].SerializeToString())
            tensor.name = name
            initializers.append(tensor)
            continue
        number = _number(name, scope)
        if name not in values or not number:
            return None
        fed[name] = values[name]
        inputs.append(helper.make_tensor_value_info(name, number, np.shape(values[name])))
    outputs = []
    for name in filter(None, node.output):
        number = _number(name, scope)
        if not number:
            return None
        outputs.append(helper.make_tensor_value_info(name, number, None))
    graph = helper.make_graph([node], "node", inputs, outputs, initializers)
    single = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    single.functions.extend(model.functions)
    return single, fed

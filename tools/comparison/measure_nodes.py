"""Nodes of a model one by one in a runtime, to find those that it refuses or computes wrongly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime
import yaml
from onnx import helper, numpy_helper

from comparison.differences import difference
from comparison.native_types import with_native_types
from measurement.describe import describe
from measurement.fold import wrong_results
from measurement.probes import probe_of
from measurement.run_models import Outcome, Worker
from opshift.inference.facts import InferenceScope
from opshift.inference.root_scopes import graph_scopes
from opshift.model.element_types import BY_NAME
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
"""Operators that ONNX declares non-deterministic, whose outputs in a chain are equal in all runs."""


class MeasuredNode(NamedTuple):
    """Node of a model, with its outcome in a runtime if it gets the inputs that the reference computes.

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
    """Return the wrong results that the data about a runtime lacks, as its file has them."""
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
    for content, native, fed, expected in _single_nodes(model, feeds):
        outcome, found = worker.outputs(native.SerializeToString(), fed)
        if outcome.outcome == "runs":
            problem = difference(found, expected, tolerance)
            outcome = Outcome("differs" if problem else "equal", problem)
        warnings = check.check(ModelNodes(ModelProto.FromString(content), default_registry())).warnings
        yield MeasuredNode(outcome, content, bool(warnings))


def conflicting_node(model: onnx.ModelProto, feeds: Mapping[str, Any], tolerance: float) -> str:
    """Return a node with inputs that both references run, with different outputs; empty without one."""
    for content, native, fed, expected in _single_nodes(model, feeds):
        for run, single in ((run_in_reference, native), (run_in_onnxruntime, _at_known_opset(native))):
            with suppress(CannotRun):
                if difference(run(single, fed), expected, tolerance):
                    return str(MeasuredNode(Outcome("differs"), content, is_recorded=False))
    return ""


def _at_known_opset(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model at the newest opset of the installed onnxruntime, if its nodes are the same there."""
    newest = get_runtime(f"onnxruntime-{onnxruntime.__version__}").opsets[DEFAULT_DOMAIN]
    lowered = onnx.ModelProto.FromString(model.SerializeToString())
    del lowered.functions[:]  # they have their own opsets; models that call them do not run
    known_at = default_registry().known_at
    for each in lowered.opset_import:
        if canonical_domain(each.domain) == DEFAULT_DOMAIN and all(
            known_at(node.op_type, newest, DEFAULT_DOMAIN)
            == known_at(node.op_type, each.version, DEFAULT_DOMAIN)
            for node in model.graph.node
        ):
            each.version = min(each.version, newest)
    return lowered


def _single_nodes(
    model: onnx.ModelProto, feeds: Mapping[str, Any]
) -> Iterator[tuple[bytes, onnx.ModelProto, dict[str, Any], list[Any]]]:
    """Yield models with one node of the main graph, also with native types, with feeds and outputs."""
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
        yield single[0].SerializeToString(), native, fed, expected


def _run(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[Any] | None:
    """Return the outputs of a model in a reference; `None` if none runs it."""
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
    """Return a model with one node, and its feeds; `None` if not all of its values are tensors."""
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

"""Operators that onnx.reference does not evaluate, or evaluates as other versions, and executed graphs.

onnx.reference implements only the newest version of many operators, and evaluates nodes of older versions as
the newest version, even if the versions compute different results.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from opshift.analysis.verification.references import REFERENCES
from opshift.inference.constants import read_constant_node
from opshift.model.graphs import ContainerProto, graphs_of
from opshift.model.messages import ModelProto
from opshift.model.node import Node, Tensor
from opshift.model.operator_ids import (
    DEFAULT_DOMAIN,
    canonical_domain,
    functions_with_opsets,
    model_domain,
    opset_imports,
)
from opshift.model.tensors import read_tensor
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry
from opshift.registry.step_rules import is_derivable
from opshift.registry.steps import IgnoreAttribute, StepAction

_VERSION_SUFFIX = re.compile(r"_(\d+)$")


def unsupported_operators(model: ModelProto, registry: Registry) -> Iterator[str]:
    """Yield a reason for each operator that onnx.reference lacks, or computes differently.

    Operators of private domains, and versions that the installed onnx lacks, need a Python reference.
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
        elif not _is_implemented(operator, registry):
            yield f"it does not implement {operator.id}, which has no Python reference"
        else:
            yield from _changed_meanings(operator, _implemented_version(operator, opset), registry)


def _is_implemented(operator: OperatorVersion, registry: Registry) -> bool:
    """Return whether the installed onnx has this version, or an older one that differs only in types."""
    newest, history = _newest_version(operator), registry.operator(operator.name, operator.domain)
    assert history is not None
    return newest > 0 and all(
        is_derivable(old, new)
        for old, new in pairwise(history.versions)
        if newest < new.since_version <= operator.since_version
    )


def _changed_meanings(operator: OperatorVersion, implemented: int, registry: Registry) -> Iterator[str]:
    history = registry.operator(operator.name, operator.domain)
    assert history is not None
    for version in history.versions:
        is_between = operator.since_version < version.since_version <= implemented
        if is_between and version.step is not None and not _is_equivalent(version.step.up):
            newer = f"version {version.since_version}, which computes different results"
            yield f"it evaluates {operator.id} as {newer}"


def _is_equivalent(up: StepAction | None) -> bool:
    """Return whether the step `up` to the next version keeps the results of every node."""
    if isinstance(up, tuple):
        return all(isinstance(verb, IgnoreAttribute) for verb in up)
    return up in (None, "compatible")


def _implemented_version(operator: OperatorVersion, opset: int) -> int:
    """Return the version of an operator that onnx.reference evaluates at an opset."""
    newest = _newest_version(operator)
    if operator.domain != DEFAULT_DOMAIN:
        return newest
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.ops import load_op

    try:
        name = load_op("", operator.name, opset, evaluator_cls=ReferenceEvaluator).__name__
    # no implementation (loading the model fails), or a function body that depends on the node
    except Exception:
        return operator.since_version
    if name == "<lambda>":  # onnx.reference evaluates the function body of this version instead
        return operator.since_version
    match = _VERSION_SUFFIX.search(name)
    return int(match[1]) if match else newest


def _newest_version(operator: OperatorVersion) -> int:
    """Return the newest version that the installed onnx defines; 0 if it does not define the operator."""
    from onnx.defs import SchemaError, get_schema

    try:
        return int(get_schema(operator.name, model_domain(operator.domain)).since_version)
    except SchemaError:
        return 0


class ExecutedGraph(NamedTuple):
    """Graph or function, its opset imports, and (`outer`) the enclosing graph or function of a subgraph."""

    container: ContainerProto
    opsets: Mapping[str, int]
    outer: ExecutedGraph | None = None

    def constant(self, name: str) -> Tensor | None:
        """Return the value of a Constant node or non-input initializer, also of outer graphs; else `None`."""
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
    pending += [ExecutedGraph(function, imports) for function, imports in functions_with_opsets(model)]
    while pending:
        part = pending.pop()
        yield part
        for node in part.container.node:
            pending += [ExecutedGraph(graph, part.opsets, part) for graph in graphs_of(node)]

"""Private adapters: their exceptions, and checks of the nodes that they emit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opshift.adapters.core.adapter_table import StepKey
from opshift.adapters.core.rewriter import Output, Rewriter
from opshift.model.errors import CannotConvert, OpshiftError, UsageError
from opshift.model.extensions import FAILURES, extension_failed
from opshift.model.graphs import node_label
from opshift.model.node import Emitted, Graph, Node, Tensor
from opshift.registry.errors import ResolveError
from opshift.registry.registry import Registry
from opshift.registry.steps import Allow
from opshift.rewriting.validation import validate_counts, validate_emitted_attributes

if TYPE_CHECKING:
    from opshift.rewriting.version_steps import VersionStep


def run_private_adapter(step: VersionStep, node: Node, out: Rewriter, registry: Registry) -> None:
    """Run a step that has a private adapter.

    Raises:
        ExtensionFailed: the adapter raises an exception, or emits invalid nodes.
        OpshiftError: any error of this package that the adapter raises, such as `CannotConvert`.
    """
    assert step.function is not None
    assert step.private_adapter is not None
    key = StepKey(step.source.domain, step.source.name, step.source.since_version, step.opset)
    label = f"node {node_label('', node.op_type, node.outputs)}"
    workspace = out.workspace
    out.workspace = names = _RecordedNames(workspace)
    try:
        step.function(node, out)
        problem = _problem(node, out, names.created, registry)
    except OpshiftError:
        raise
    except FAILURES as error:
        raise extension_failed(f"adapter {key}", step.private_adapter, error, label) from error
    finally:
        out.workspace = workspace
    if problem:
        raise extension_failed(f"adapter {key}", step.private_adapter, problem, label)


def _problem(node: Node, out: Rewriter, created: set[str], registry: Registry) -> str:
    """Return the first problem of the emitted nodes; empty if they are valid."""
    if not out.emitted:
        return "emits no node"
    known, produced = {"", *node.inputs, *created}, set[str]()
    for emitted in out.emitted:
        results = emitted.node.outputs
        reason = _wrong_name(emitted.node, known, {"", *node.outputs, *created} - produced)
        reason = reason or _contradiction(emitted, registry)
        if reason:
            return f"emits {emitted.node.op_type}: {reason}"
        produced.update(filter(None, results))
        known.update(results)
    missing = [name for name in node.outputs if name not in produced and out.is_used(name)]
    return f"does not compute the output {missing[0]!r}" if missing else ""


def _wrong_name(node: Node, known: set[str], new: set[str]) -> str:
    for name in (*node.inputs, *node.outputs):
        if not isinstance(name, str):
            return f"{name!r} is not the name of a value"
    unknown = [f"the input {name!r} is unknown" for name in node.inputs if name not in known]
    unknown += [f"the output {name!r} is not a new name" for name in node.outputs if name not in new]
    return next(iter(unknown), "")


def _contradiction(emitted: Emitted, registry: Registry) -> str:
    """Return how an emitted node contradicts its definition; empty if it is valid."""
    node = emitted.node
    try:
        operator = registry.get_schema(node.op_type, emitted.opset, node.domain)
        validate_counts(node, operator)
        validate_emitted_attributes(node, operator)
    except (CannotConvert, ResolveError, UsageError) as error:
        return error.reason + ("" if isinstance(error, CannotConvert) else f"; {error.remedy}")
    graphs = (value for value in node.attributes.values() if isinstance(value, Graph))
    nested = (each for graph in graphs for each in (*graph.nodes, *graph.nodes_after))
    found = ((each, _contradiction(each, registry)) for each in nested)
    return next((f"{each.node.op_type} in a subgraph: {reason}" for each, reason in found if reason), "")


class _RecordedNames:
    """Output of an adapter that records the names that it creates."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self.created: set[str] = set()

    def fresh(self, hint: str) -> str:
        name = self._output.fresh(hint)
        self.created.add(name)
        return name

    def add_constant(self, tensor: Tensor) -> str:
        name = self._output.add_constant(tensor)
        self.created.add(name)
        return name

    def declare_rank(self, name: str) -> None:
        self._output.declare_rank(name)

    def allow(self, kind: Allow, reason: str) -> bool:
        return self._output.allow(kind, reason)

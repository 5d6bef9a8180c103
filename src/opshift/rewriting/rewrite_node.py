"""Rewrite one node: apply its steps, and those of emitted nodes, until all are valid at the targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import NamedTuple, Protocol

from opshift.adapters.core.adapter_table import Adapter, StepKey
from opshift.adapters.core.rewriter import (
    LARGE_FACTOR,
    MAX_CONSTANT_BYTES,
    MAX_NODES,
    Output,
    Rewriter,
    require_at_most,
)
from opshift.inference.facts import Facts
from opshift.model.errors import NOT_ALLOWED, CannotConvert, OpshiftError, UsageError
from opshift.model.extensions import FAILURES, ExtensionFailed, extension_failed
from opshift.model.graphs import node_label
from opshift.model.node import Emitted, Graph, Node, Tensor
from opshift.registry.errors import ResolveError
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry
from opshift.registry.steps import Allow
from opshift.rewriting.result import ComputedRewrite, ConvertedNode, EmittedGraph
from opshift.rewriting.routes import Route, Router
from opshift.rewriting.type_check import changed_output_type, require_supported_types
from opshift.rewriting.validation import (
    CHECK_MODEL_REMEDY,
    validate_axes,
    validate_counts,
    validate_emitted_attributes,
    validate_node,
)
from opshift.rewriting.version_steps import VersionStep


def run_private_adapter(step: VersionStep, node: Node, out: Rewriter, registry: Registry) -> None:
    """Run a step whose adapter is not part of opshift, and check the nodes that it emits.

    Raises:
        ExtensionFailed: the adapter raises an exception, or emits invalid nodes.
        OpshiftError: any error of this package that the adapter raises, such as `CannotConvert`.
    """
    assert step.function is not None
    assert step.private_adapter is not None
    workspace = out.workspace
    out.workspace = names = _RecordedNames(workspace)
    try:
        step.function(node, out)
        problem = _problem(node, step.source, out, names, registry)
    except OpshiftError:
        raise
    except FAILURES as error:
        raise _adapter_failed(step, step.private_adapter, node, error) from error
    finally:
        out.workspace = workspace
    if problem:
        raise _adapter_failed(step, step.private_adapter, node, problem)


def _adapter_failed(
    step: VersionStep, adapter: Adapter, node: Node, cause: BaseException | str
) -> ExtensionFailed:
    key = StepKey(step.source.domain, step.source.name, step.source.since_version, step.opset)
    return extension_failed(
        f"adapter {key}", adapter, cause, f"node {node_label('', node.op_type, node.outputs)}"
    )


def _problem(
    node: Node, operator: OperatorVersion, out: Rewriter, names: _RecordedNames, registry: Registry
) -> str:
    """Return the first problem of the nodes that a private adapter emitted; empty if they are valid."""
    if not out.emitted:
        return "emits no node"
    created = names.types.keys()
    known, produced = {"", *node.inputs, *created}, set[str]()
    converted_nodes: list[ConvertedNode] = []
    for emitted in out.emitted:
        results = emitted.node.outputs
        reason = _wrong_name(emitted.node, known, {"", *node.outputs, *created} - produced)
        reason = reason or _contradiction(emitted, registry)
        if reason:
            return f"emits {emitted.node.op_type}: {reason}"
        version = registry.get_schema(emitted.node.op_type, emitted.opset, emitted.node.domain)
        converted_nodes.append(ConvertedNode(emitted.node, version, True))
        produced.update(filter(None, results))
        known.update(results)
    missing = [name for name in node.outputs if name not in produced and out.is_used(name)]
    if missing:
        return f"does not compute the output {missing[0]!r}"
    return changed_output_type(ConvertedNode(node, operator, True), converted_nodes, out.facts, names)


def _wrong_name(node: Node, known: set[str], new: set[str]) -> str:
    for name in (*node.inputs, *node.outputs):
        if not isinstance(name, str):
            return f"{name!r} is not the name of a value"
    unknown = [f"the input {name!r} is unknown" for name in node.inputs if name not in known]
    unknown += [f"the output {name!r} is not a new name" for name in node.outputs if name not in new]
    return next(iter(unknown), "")


def _contradiction(emitted: Emitted, registry: Registry) -> str:
    """Return the reason why an emitted node, or one in its graphs, is invalid; empty if it is valid."""
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


class _ForwardingOutput:
    """`Output` that forwards all calls to another `Output`."""

    def __init__(self, output: Output) -> None:
        self._output = output

    def fresh(self, hint: str) -> str:
        return self._output.fresh(hint)

    def add_constant(self, tensor: Tensor) -> str:
        return self._output.add_constant(tensor)

    def declare_shape(self, name: str, rank: int | None = None) -> None:
        self._output.declare_shape(name, rank)

    def allow(self, kind: Allow, reason: str) -> bool:
        return self._output.allow(kind, reason)


class _RecordedNames(_ForwardingOutput):
    """Wrapper of an `Output` that records the names that the output creates, and the types of constants."""

    def __init__(self, output: Output) -> None:
        super().__init__(output)
        self.types: dict[str, str | None] = {}

    def fresh(self, hint: str) -> str:
        name = super().fresh(hint)
        self.types[name] = None
        return name

    def add_constant(self, tensor: Tensor) -> str:
        name = super().add_constant(tensor)
        self.types[name] = tensor.element_type
        return name

    def constant_type(self, name: str) -> str | None:
        return self.types.get(name)


class _AllowingOutput(_ForwardingOutput):
    """Wrapper of an `Output` that allows one more kind of deviation."""

    def __init__(self, output: Output, kind: str) -> None:
        super().__init__(output)
        self._kind = kind

    def allow(self, kind: Allow, reason: str) -> bool:
        return kind == self._kind or super().allow(kind, reason)


MAX_STEPS = 50_000
"""Maximum number of steps per node; bounds the time, and ends steps that undo each other in a cycle."""

MAX_REPETITIONS = 500
"""Number of runs of one private adapter for one node; with more, an exceeded limit counts as its error."""

INVALID_NODE_ERRORS = (
    LookupError,
    TypeError,
    ValueError,
    ArithmeticError,
    AttributeError,
    StopIteration,
    RuntimeError,
)
"""Exceptions of a step that reads a missing or malformed attribute, input or output of an invalid node."""


class _RewriteOutput(Output, Protocol):
    """`Output` for the steps of a node, which also accepts emitted nodes and graphs."""

    @property
    def constant_bytes(self) -> int: ...

    def is_allowed(self, kind: Allow) -> bool: ...

    def constant_type(self, name: str) -> str | None: ...

    def add_emitted(self, node: Node, opset: int) -> None: ...

    def add_graph(self, graph: Graph) -> None: ...


def _count_nested(emitted: Emitted) -> int:
    """Return the number of nodes in the graphs of an emitted node, including nested graphs."""
    graphs = [each for each in emitted.node.attributes.values() if isinstance(each, Graph)]
    inner = [node for graph in graphs for node in (*graph.nodes, *graph.nodes_after)]
    return len(inner) + sum(map(_count_nested, inner))


def rewrite_node(
    node: Node,
    source: int,
    facts: Facts,
    output: _RewriteOutput,
    router: Router,
    view: Node | None = None,
) -> ComputedRewrite:
    """Rewrite a node for the target opsets.

    `source` is the opset of the node's domain before the rewrite; `output` receives the names and constants
    that the steps add. The steps get `view`, by default `node`; validation always uses `node`.

    Raises:
        CannotConvert: the node is invalid, a step refuses it, or the result is too large.
        ExtensionFailed: a private adapter fails, and the node is valid.
        InvalidModel: a name in the node is not UTF-8 text.
        ResolveError: the opset lacks the operator of the node, or of a node that a step emitted.
    """
    first = router.route(node.domain, node.op_type, source)
    view = view or node
    bytes_before = output.constant_bytes
    try:
        refusals: list[CannotConvert] = []
        limit = MAX_NODES * (LARGE_FACTOR if output.is_allowed("large") else 1)
        rewriter = _NodeRewriter(facts, output, router, first.operator, refusals, limit)
        result = rewriter.rewrite(view, source, first)
        # after other refusals, the result is incomplete
        if all(each.code == NOT_ALLOWED for each in refusals):
            try:
                require_at_most(result.node_count, MAX_NODES, "nodes", output)
                added_bytes = output.constant_bytes - bytes_before
                require_at_most(added_bytes, MAX_CONSTANT_BYTES, "bytes of constants", output)
                require_supported_types(result, facts, output)
            except CannotConvert as error:
                refusals.append(error)
        if refusals:
            raise _most_severe(refusals, source)
    except (CannotConvert, ExtensionFailed):
        # Report an invalid node instead. Validation is slow, so unchanged nodes are not validated.
        validate_node(node, first.operator, first.older_versions)
        validate_axes(node, first.operator, facts)
        raise
    if len(result.nodes) != 1 or result.nodes[0].node is not view:
        validate_node(node, first.operator, first.older_versions)
        validate_axes(node, first.operator, facts)
    return result


class _NodeRewriter(NamedTuple):
    """Conversion of one node along the routes of its operator version to the target opset."""

    facts: Facts
    output: _RewriteOutput
    router: Router
    operator: OperatorVersion
    refusals: list[CannotConvert]
    limit: int
    """Maximum number of emitted nodes: steps never remove nodes, so a larger number is refused early."""

    def rewrite(self, node: Node, source: int, first: Route) -> ComputedRewrite:
        """Convert the node, and the nodes that its steps emit, until all are valid at the target."""
        pending: list[Emitted | None] = [Emitted(node, source, True)]  # None marks the end of an expansion
        expanded: list[OperatorVersion] = []
        done: list[ConvertedNode] = []
        applied_steps: list[VersionStep] = []
        while pending:
            popped = pending.pop()
            if popped is None:
                expanded.pop()
                continue
            current, opset, successor = popped
            route = first if current is node else self.router.route(current.domain, current.op_type, opset)
            for step in route.steps:
                applied_steps.append(step)
                try:
                    emitted = self._run_step(step, current, expanded)
                except CannotConvert as error:
                    # Continue with other nodes, because the refusal nearest to the source opset is reported.
                    self.refusals.append(error)
                    break
                if step.target is None:
                    expanded.append(step.source)
                    pending.append(None)
                if len(emitted) > 1 or not _continues_route(emitted[0], current, step):
                    if not successor:
                        emitted = [each._replace(is_replacement=False) for each in emitted]
                    pending += emitted
                    count = len(done) + len(pending) - len(expanded) + sum(map(_count_nested, emitted))
                    self._require_few(count, applied_steps, node)
                    break
                current = emitted[0].node
            else:
                if current is not node:
                    validate_emitted_attributes(current, route.final)
                if route.status.has_graphs:
                    current = self._with_converted_graphs(current, applied_steps)
                done.append(ConvertedNode(current, route.final, successor))
            _require_few_steps(applied_steps, node)
        return ComputedRewrite(first.operator, node, tuple(done), tuple(applied_steps))

    def _require_few(self, count: int, steps: list[VersionStep], node: Node) -> None:
        """Raise CannotConvert, or ExtensionFailed because of a cycle, if the number of nodes is too large."""
        if count > self.limit:
            _require_no_cycle(steps, node)
            require_at_most(count, MAX_NODES, "nodes", self.output)

    def _with_converted_graphs(self, node: Node, applied_steps: list[VersionStep]) -> Node:
        """Return a node with its emitted graphs converted, except for embedded subgraphs of the model."""
        converted: dict[str, EmittedGraph] = {}
        for name, graph in node.attributes.items():
            if isinstance(graph, Graph):
                self.output.add_graph(graph)
                nodes, after = (
                    tuple(self._convert_nodes(each, applied_steps))
                    for each in (graph.nodes, graph.nodes_after)
                )
                converted[name] = EmittedGraph(graph, nodes, after)
        return node.with_(attributes={**node.attributes, **converted}) if converted else node

    def _convert_nodes(
        self, emitted: tuple[Emitted, ...], applied_steps: list[VersionStep]
    ) -> Iterator[ConvertedNode]:
        for node, opset, _ in emitted:
            route = self.router.route(node.domain, node.op_type, opset)
            if not route.steps:
                validate_emitted_attributes(node, route.final)
            result = self.rewrite(node, opset, route)
            applied_steps += result.steps
            _require_few_steps(applied_steps, node)
            yield from result.nodes

    def _run_step(
        self, step: VersionStep, node: Node, expanded: Collection[OperatorVersion]
    ) -> list[Emitted]:
        """Return the nodes that a step emits, last first; one of them is the replacement.

        `expanded` has the operators that expanded into the node: expanding one again would be a cycle.
        """
        if step.target is None and step.source in expanded:
            reason = f"{step.source.id} expands into operators that expand into {step.source.id} again"
            raise CannotConvert(reason, "operator.no-equivalent", remedy="keep the operator")
        try:
            emitted = self._emit(step, node, self.output)
        except CannotConvert as error:
            if error.code != NOT_ALLOWED:
                raise
            # Continue as if the deviation were allowed: if a later step refuses anyway, report that refusal.
            self.refusals.append(error)
            emitted = self._emit(step, node, _AllowingOutput(self.output, error.subject))
        if len(emitted) == 1:
            return emitted if emitted[0].is_replacement else [emitted[0]._replace(is_replacement=True)]
        if not any(each.is_replacement for each in emitted):
            emitted[-1] = emitted[-1]._replace(is_replacement=True)
        for each in emitted:
            self.output.add_emitted(each.node, each.opset)
        emitted.reverse()
        return emitted

    def _emit(self, step: VersionStep, node: Node, output: Output) -> list[Emitted]:
        out = Rewriter(self.facts, output, step.source, step.target, step.opset, self.router.default_opset)
        assert step.function is not None
        try:
            if step.private_adapter is None:
                step.function(node, out)
            else:
                run_private_adapter(step, node, out, self.router.registry)
        except CannotConvert as error:
            self._attribute_to_model(error, step)
            raise
        except INVALID_NODE_ERRORS as error:
            if isinstance(error, UnicodeDecodeError):
                raise  # the error is reported as an error about an invalid model
            reason = f"the node does not have the form that {step.source.id} requires"
            raise CannotConvert(reason, "node.invalid", remedy=CHECK_MODEL_REMEDY) from error
        return out.emitted

    def _attribute_to_model(self, error: CannotConvert, step: VersionStep) -> None:
        """Set `nearest` of a refusal, and reword the refusal of an emitted node for the node of the model."""
        first, own = step.source.since_version, self.operator
        if step.source.domain == own.domain and not self.router.without:
            error.nearest = first if step.opset < first else step.opset - 1
        if step.source.name == own.name:
            return
        if error.code == "type.unsupported":
            limit = f"below opset {first}" if step.opset < first else f"at opset {step.opset}"
            error.reason = f"the operator has no equivalent for {error.subject} {limit}"
        else:
            error.reason = f"the node must be expressed by other operators, and {error.reason}"


def _most_severe(refusals: list[CannotConvert], source: int) -> CannotConvert:
    """Return the refusal nearest to the source, preferably one that remains if deviations are allowed."""
    by_distance = sorted(refusals, key=lambda each: abs(source - each.nearest))
    found = next((each for each in by_distance if each.code != NOT_ALLOWED), by_distance[0])
    found.nearest = by_distance[0].nearest  # up to this opset, no step refuses the node
    return found


def _require_no_cycle(steps: list[VersionStep], node: Node) -> None:
    """Raise ExtensionFailed if a private adapter seems to emit nodes that it converts again without end."""
    private = (each for each in steps if each.private_adapter is not None)
    for step, count in Counter(private).most_common(1):
        if step.private_adapter is not None and count > MAX_REPETITIONS:
            problem = f"converts {count:,} nodes in place of one: it emits nodes that it converts again"
            raise _adapter_failed(step, step.private_adapter, node, problem)


def _require_few_steps(steps: list[VersionStep], node: Node) -> None:
    if len(steps) > MAX_STEPS:
        _require_no_cycle(steps, node)
        remedy = "reduce the sizes in the model, or convert to a newer opset"
        reason = f"the conversion of this node needs more than {MAX_STEPS:,} steps"
        raise CannotConvert(reason, "limit.exceeded", remedy=remedy)


def _continues_route(emitted: Emitted, node: Node, step: VersionStep) -> bool:
    """Return whether a step emitted the same operator, so that the next step of the route applies."""
    return emitted.node is node or (
        emitted.opset == step.opset
        and emitted.node.op_type == node.op_type
        and emitted.node.domain == node.domain
    )

"""Check whether a runtime implements all nodes of a model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import field
from typing import Final

from opshift.analysis.runtime_support.conditions import concerns
from opshift.analysis.runtime_support.model_nodes import ModelNode, ModelNodes
from opshift.model.errors import CannotConvert
from opshift.model.files import ModelLike, model_of
from opshift.model.frozen_record import FrozenRecord
from opshift.model.onnx_ir.models import reading_onnx_ir
from opshift.model.operator_ids import DEFAULT_DOMAIN, OperatorId
from opshift.registry.registry import Registry, default_registry
from opshift.registry.runtimes.files import get_runtime
from opshift.registry.runtimes.runtime import Kernel, Runtime, Support

IN_BODY: Final = "; in its function body, "
"""Text between the reasons for a node and for a node in its function body."""


INVALID_BODIES: Final = ("node.invalid", "type.unsupported")
"""Codes of function bodies that are invalid for a node."""

FIRST_CAST_TO_NUMBERS: Final = 6
"""Opset from which the attribute `to` of Cast is a number; onnxruntime writes no other form."""

ASSUMED_TYPES: Final = {"tensor(float)"}
"""Types that kernels implement if their documentation names no types."""


class UnsupportedNode(FrozenRecord):
    """Node that a runtime does not implement, or a property of the model that it does not accept."""

    place: str
    """Place in the model; `model` for its opsets and its IR version."""
    operator: str
    """Operator version, such as `ai.onnx.Add:14`, or called function; empty for a property of the model."""
    types: Mapping[str, str]
    """Known types by type variable or parameter."""
    reason: str
    remedy: str


class MissingKernel(FrozenRecord):
    """Nodes that a runtime does not implement for the same reason, see `UnsupportedNode`."""

    places: tuple[str, ...]
    operator: str
    types: Mapping[str, str]
    reason: str
    remedy: str


class ModelSupport(FrozenRecord):
    """Answer to whether a runtime implements a model."""

    missing: tuple[MissingKernel, ...]
    """Nodes that prevent it."""
    warnings: tuple[str, ...] = ()
    """Known wrong results of its kernels."""
    uncertain: tuple[str, ...] = ()
    """Reasons why nodes that count as implemented may not be."""
    fallback: tuple[str, ...] = ()
    """Operator versions that the runtime leaves to the one that it falls back to."""


@reading_onnx_ir
def check_support(
    model: ModelLike, runtime: Runtime, registry: Registry | None = None
) -> tuple[UnsupportedNode, ...]:
    """Return the nodes of a model that a runtime does not implement.

    A node is implemented if there is a kernel for its operator version and types and no restriction applies,
    if the runtime replaces it by its function body and implements all nodes of it, or if the runtime that it
    falls back to implements it. Unknown types and undecided restrictions count as implemented.

    Raises:
        InvalidModel: the model cannot be read.
    """
    source, _ = model_of(model)
    support = RuntimeCheck(runtime).check(ModelNodes(source, registry or default_registry()))
    return tuple(
        UnsupportedNode(place, each.operator, each.types, each.reason, each.remedy)
        for each in support.missing
        for place in each.places
    )


class _Notes(FrozenRecord):
    """Notes about a model, each once, in the order of the model."""

    warnings: dict[str, None] = field(default_factory=dict)
    uncertain: dict[str, None] = field(default_factory=dict)
    fallback: dict[str, None] = field(default_factory=dict)


class RuntimeCheck:
    """Check of the nodes of models for one runtime; equal questions are answered once.

    With `refuses_wrong`, nodes that the runtime is known to compute wrongly count as not implemented.
    """

    def __init__(self, runtime: Runtime, *, refuses_wrong: bool = False) -> None:
        self._runtime = runtime
        self._refuses_wrong = refuses_wrong
        self._fallback = RuntimeCheck(get_runtime(runtime.falls_back)) if runtime.falls_back else None
        self._kernels: dict[Hashable, Support] = {}
        self._bodies: dict[ModelNodes, str] = {}
        self._notes = _Notes()

    def check(self, model: ModelNodes) -> ModelSupport:
        """Return whether the runtime implements a model, and which nodes prevent it."""
        self._notes = notes = _Notes()
        missing = (*self._model_problems(model), *self._missing_kernels(model))
        return ModelSupport(missing, tuple(notes.warnings), tuple(notes.uncertain), tuple(notes.fallback))

    def newest_import(self, domain: str) -> int | None:
        """Return the newest opset of a domain that a model may import; `None` if any one is accepted."""
        newest = self._runtime.newest_import(domain)
        return self._fallback.newest_import(domain) if newest is None and self._fallback else newest

    def _model_problems(self, model: ModelNodes) -> Iterator[MissingKernel]:
        runtime = self._runtime
        for domain, opset in model.opsets.items():
            newest = self.newest_import(domain) or opset
            if opset > newest:
                reason = f"{runtime.name} supports opset {newest} of {domain}, the model has {opset}"
                remedy = f"convert the model to opset {newest} or older"
                yield MissingKernel(("model",), "", {}, reason, remedy)
        newest = runtime.ir_version or model.ir_version
        if model.ir_version > newest:
            reason = f"{runtime.name} supports IR version {newest}, the model has {model.ir_version}"
            yield MissingKernel(("model",), "", {}, reason, f"convert the model to IR version {newest}")
        if not runtime.expands_functions:
            for function, places in model.calls.items():
                reason = f"{runtime.name} does not accept local functions"
                yield MissingKernel(tuple(places), function, {}, reason, "inline the functions")

    def _missing_kernels(self, model: ModelNodes) -> Iterator[MissingKernel]:
        for nodes in model.groups.values():
            first = nodes[0]
            identity, newest = self._identity(first), self._runtime.opsets.get(first.domain)
            if newest and identity.since_version > newest < model.opsets.get(first.domain, 0):
                continue  # it exists only in opsets that are too new, which `_model_problems` reports
            own = self._kernel(first)
            is_restricted = bool(self._runtime.restrictions_of(identity) or self._runtime.errors_of(identity))
            answers: dict[object, str] = {}
            places: defaultdict[str, list[str]] = defaultdict(list)
            for node in nodes if is_restricted or not own else nodes[:1]:
                # Without restrictions, equal nodes with equal function bodies have the same answer.
                is_alone = is_restricted or self._fallback
                key = node if is_alone else node.has_usable_body and model.body(node)
                if key not in answers:
                    answers[key] = self._reason(node, model)
                places[answers[key]].append(node.place)
            places.pop("", None)
            for reason, found in places.items():
                known = {name: each for name, each in first.types if each}
                yield MissingKernel(tuple(found), str(identity), known, reason, own.remedy)

    def _reason(self, node: ModelNode, model: ModelNodes) -> str:
        """Return why no runtime implements a node; empty if one does."""
        reason = self._own_reason(node, model)
        if reason and self._fallback is not None and not self._fallback._reason(node, model):
            self._notes.fallback[str(self._identity(node))] = None
            return ""
        return reason

    def _own_reason(self, node: ModelNode, model: ModelNodes) -> str:
        runtime, identity, own = self._runtime, self._identity(node), self._kernel(node)
        errors = runtime.errors_of(identity) if self._refuses_wrong else ()
        for each in (*runtime.restrictions_of(identity), *errors):
            is_refused = concerns(each, node)
            if is_refused:
                return f"{runtime.name} refuses the node: {each.reason}"
            if is_refused is None:
                self._notes.uncertain[f"{identity}: {each.reason}"] = None
        if own.kernel is not None:
            self._add_notes(node, own.kernel, model)
            return ""
        is_known = identity.since_version <= runtime.opsets.get(node.domain, 0)
        if not (runtime.expands_functions and is_known and node.has_usable_body):
            return own.reason
        body = model.body(node)
        if isinstance(body, CannotConvert):
            if body.code in INVALID_BODIES:
                return f"{own.reason}{IN_BODY}{body.reason}"
            self._notes.uncertain[f"{identity}: its function body is unknown: {body.reason}"] = None
            return ""
        if body not in self._bodies:
            self._bodies[body] = next(filter(None, (self._reason(each, body) for each in body.nodes)), "")
        inner = self._bodies[body]
        return inner and f"{own.reason}{IN_BODY}{inner.rpartition(IN_BODY)[2]}"

    def _kernel(self, node: ModelNode) -> Support:
        identity, casts = self._identity(node), self._inserts_casts(node)
        question = identity, node.types, casts
        if question not in self._kernels:
            known = {name: each for name, each in node.types if each}
            self._kernels[question] = self._runtime.kernel(identity, known, inserts_casts=casts)
        return self._kernels[question]

    def _inserts_casts(self, node: ModelNode) -> bool:
        """Return whether the runtime casts inputs of a node to a type that it computes in.

        A function body comes first: the runtime casts the inputs of its nodes.
        """
        runtime, opset = self._runtime, node.scope.opsets.get(DEFAULT_DOMAIN, FIRST_CAST_TO_NUMBERS)
        types = map(node.scope.element_type, filter(None, node.node.inputs))
        return (
            opset >= FIRST_CAST_TO_NUMBERS
            and not runtime.computes_in.keys().isdisjoint(types)
            and not (runtime.expands_functions and node.has_usable_body)
        )

    def _add_notes(self, node: ModelNode, kernel: Kernel, model: ModelNodes) -> None:
        identity = str(self._identity(node))
        for each in self._runtime.errors_of(self._identity(node)):
            if concerns(each, node) is not False:
                self._notes.warnings[f"{identity}: {each.reason}"] = None
        if any(each is None and name in kernel.types for name, each in node.types):
            self._notes.uncertain[f"{identity}: an element type is unknown"] = None
        is_documented = bool(kernel.types) or self._runtime.evidence.kind != "documentation"
        if is_documented or {each for _, each in node.types} <= ASSUMED_TYPES:
            return
        if self._fallback is None or self._fallback._reason(node, model):
            self._notes.uncertain[f"{identity}: the types of its kernels are not documented"] = None

    def _identity(self, node: ModelNode) -> OperatorId:
        """Return the operator version of a node; for an operator of the runtime, that of its kernel."""
        if node.operator is not None:
            return node.operator.id._replace(domain=node.domain)  # that of a nonstandard operator differs
        opset = node.scope.opset_of(node.node.domain)
        kernels = self._runtime.operators.get(f"{node.domain}.{node.node.op_type}", ())
        versions = (each.versions[0] for each in kernels if each.versions[0] <= opset)
        return OperatorId(node.domain, node.node.op_type, max(versions, default=opset))

"""Reports of nodes that a runtime does not implement, and of properties that it does not accept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import field
from itertools import chain, islice
from shlex import quote
from typing import Final

from opshift.model.element_types import NAME_BY_NUMBER
from opshift.model.errors import CannotConvert
from opshift.model.files import ModelLike, model_of, reading_onnx_ir
from opshift.model.operator_ids import OperatorId
from opshift.model.shared_data import FrozenRecord
from opshift.model.types import short_type
from opshift.registry.errors import NotYetIntroduced, UnknownOperator
from opshift.registry.explanations import refusal_cause
from opshift.registry.registry import Registry, registry_or_default
from opshift.registry.runtimes.files import get_runtime
from opshift.registry.runtimes.restrictions import Condition
from opshift.registry.runtimes.runtime import Kernel, Runtime, Support
from opshift.runtimes.conditions import OF_DISTANT_NODES, SEARCHES, depends_on_node
from opshift.runtimes.constant_values import has_typed_field, is_misread
from opshift.runtimes.kernel_lookup import KernelLookup, introduced_later, type_problem
from opshift.runtimes.model_nodes import ModelNode, ModelNodes, ordered
from opshift.runtimes.model_notes import model_notes
from opshift.runtimes.node_group import SCHEMA_QUESTION, NodeGroup
from opshift.runtimes.schema_problems import NO_DIFFERENCE, schema_problem

IN_BODY: Final = "; in its function body, "
"""Text between the reason for a node and the reason for a node in its function body."""


INVALID_BODIES: Final = ("node.invalid", "type.unsupported")
"""Codes of CannotConvert for an invalid function body; with any other code, the body is unknown."""

VERSION: Final = "version"
"""Noun in summaries for an opset or IR version that is too new."""


class UnsupportedNode(FrozenRecord):
    """Node that a runtime does not implement, or property of a model that a runtime does not accept."""

    place: str
    """Place in the model; `model` for its opsets and its IR version."""
    operator: str
    """Operator version, such as `ai.onnx.Add:14`, or called function; empty for a property of the model."""
    types: Mapping[str, str]
    """Known types by type variable or parameter."""
    reason: str
    remedy: str


class UnsupportedGroup(FrozenRecord):
    """Nodes that a runtime does not implement for the same reason; see `UnsupportedNode` for the fields."""

    places: tuple[str, ...]
    operator: str
    types: Mapping[str, str]
    reason: str
    remedy: str
    label: str = ""
    """Noun for summaries, such as `inputs of unknown rank`; empty if there is an operator."""
    is_convertible: bool = True
    """Whether a conversion may help; otherwise only the remedy does."""


class ModelSupport(FrozenRecord):
    """Support of a model by a runtime: missing kernels, uncertain answers and notes."""

    missing: tuple[UnsupportedGroup, ...]
    """Nodes that the runtime does not implement, and properties of the model that it does not accept."""
    warnings: tuple[str, ...] = ()
    """Known wrong or inexact results of kernels that the model uses."""
    wrong: tuple[str, ...] = ()
    """Operator versions with wrong results; replacing their nodes avoids these results."""
    uncertain: tuple[str, ...] = ()
    """Reasons why nodes that count as implemented may not be."""
    fallback: tuple[str, ...] = ()
    """Operator versions that run in the fallback runtime."""
    doubtful: tuple[str, ...] = ()
    """Operator versions of nodes that the runtime may refuse, or whose results may be wrong."""


@reading_onnx_ir
def check_support(
    model: ModelLike, runtime: Runtime, registry: Registry | None = None
) -> tuple[UnsupportedNode, ...]:
    """Return the nodes of a model that a runtime does not implement, and properties that it does not accept.

    A node that the schemas of the runtime allow is implemented if there is a kernel for its operator version
    and types and no restriction applies, if the runtime replaces it by its function body and implements all
    nodes of the body, or if the fallback runtime implements it. Nodes with unknown types, unknown function
    bodies or undecided restrictions count as implemented.

    Raises:
        InvalidModel: the model cannot be read.
    """
    source, _ = model_of(model)
    _, nodes = ordered(source, registry_or_default(registry))
    support = RuntimeCheck(runtime).check(nodes)
    return tuple(
        UnsupportedNode(place, each.operator, each.types, each.reason, each.remedy)
        for each in support.missing
        for place in each.places
    )


class _Notes(FrozenRecord):
    """Collected fields of a `ModelSupport`; the keys are the notes, each once, in the order of the model."""

    warnings: dict[str, None] = field(default_factory=dict)
    wrong: dict[str, None] = field(default_factory=dict)
    uncertain: dict[str, None] = field(default_factory=dict)
    fallback: dict[str, None] = field(default_factory=dict)
    doubtful: dict[str, None] = field(default_factory=dict)

    def update(self, other: _Notes) -> None:
        for name, notes in vars(other).items():
            vars(self)[name].update(notes)


_Answer = Callable[[ModelNode], Hashable]
"""Function that answers a question about a node, such as whether a restriction concerns it."""


class RuntimeCheck:
    """Check whether a runtime implements the nodes of models; answers about nodes are cached.

    With `refuses_wrong`, nodes that the runtime is known to compute wrongly count as not implemented.

    Attributes:
        runtime: the runtime.
    """

    def __init__(self, runtime: Runtime, *, refuses_wrong: bool = False) -> None:
        self.runtime = runtime
        self._refuses_wrong = refuses_wrong
        other = get_runtime(runtime.falls_back) if runtime.falls_back else None
        self._fallback = RuntimeCheck(other, refuses_wrong=refuses_wrong) if other else None
        base = self._fallback.runtime if self._fallback else runtime
        self._schemas = base.schemas if base.validates_nodes else None
        self._misorders_functions_in = base.misorders_functions_in
        fallback: KernelLookup | None = self._fallback._lookup if self._fallback else None
        self._lookup: KernelLookup = KernelLookup(runtime, self._schemas, fallback)
        self._bodies: dict[ModelNodes, tuple[str, _Notes]] = {}
        """Reason and notes about each function body."""
        self._notes = _Notes()

    def check(self, model: ModelNodes, *, lists_all: bool = True) -> ModelSupport:
        """Return the support for a model; without `lists_all`, `missing` contains only the first cause."""
        self._notes = notes = _Notes()
        self._add_model_notes(model)
        causes = chain(self._model_problems(model), self._missing_kernels(model, model.groups.values()))
        missing = tuple(causes if lists_all else islice(causes, 1))
        lists = map(tuple, (notes.warnings, notes.wrong, notes.uncertain, notes.fallback, notes.doubtful))
        return ModelSupport(missing, *lists)

    def find_missing(self, model: ModelNodes, operators: Collection[str]) -> UnsupportedGroup | None:
        """Return nodes of `operators`, such as `ai.onnx.Cast`, that the runtime refuses for one reason.

        Return `None` if the runtime implements all nodes of these operators. This is faster than `check`.
        """
        self._notes = _Notes()
        groups = [each for each in model.groups.values() if each.operator in operators]
        return next(self._missing_kernels(model, groups), None)

    def _add_model_notes(self, model: ModelNodes) -> None:
        runtime = self.runtime
        self._notes.uncertain.update(dict.fromkeys(model_notes(model, runtime)))
        if runtime.inexact_types:
            first = [group.nodes[0] for group in model.groups.values()]
            used = {short_type(each) for node in first for _, each in node.types if each} | model.input_types
            for name, difference in runtime.inexact_types.items():
                if name in used:
                    self._notes.warnings[f"{name}: {difference}"] = None

    def newest_import(self, domain: str) -> int | None:
        """Return the newest opset of a domain that a model may import; `None` if all opsets are accepted."""
        newest = self.runtime.newest_import(domain)
        return self._fallback.newest_import(domain) if newest is None and self._fallback else newest

    def needs_ranks(self, model: ModelNodes) -> bool:
        """Return whether the runtime refuses a model because the rank of an input is unknown."""
        return self.runtime.needs_input_ranks and bool(model.unranked_inputs)

    def is_restricted(self, operator: OperatorId) -> bool:
        """Return whether the runtime or its fallback has restrictions for an operator version."""
        other = self._fallback
        return bool(self.runtime.restrictions_of(operator)) or bool(other and other.is_restricted(operator))

    def depends_on_conversion(self, operator: OperatorId) -> bool:
        """Return whether a restriction of an operator version reads the opset of the model or other nodes."""
        return any(
            each.opsets or each.beside or not SEARCHES.isdisjoint(each.parts)
            for each in self._conditions(operator)
        )

    def depends_on_distant_nodes(self, operator: OperatorId) -> bool:
        """Return whether a restriction of an operator version reads nodes besides the inputs' producers."""
        return any(not OF_DISTANT_NODES.isdisjoint(each.parts) for each in self._conditions(operator))

    def _conditions(self, operator: OperatorId) -> Iterator[Condition]:
        """Yield the conditions of an operator version's restrictions in the runtime and its fallback."""
        for each in self.runtime.restrictions_of(operator):
            yield from filter(None, (each.when, each.unless))
        if self._fallback is not None:
            yield from self._fallback._conditions(operator)

    def has_unknown_attribute(self, model: ModelNodes) -> bool:
        """Return whether the runtime refuses an attribute that no version of its operator has."""
        schemas = self._schemas
        return schemas is not None and any(
            not names.issubset(schemas.get(operator, NO_DIFFERENCE).adds)
            for operator, names in model.unknown_attributes.items()
        )

    def _model_problems(self, model: ModelNodes) -> Iterator[UnsupportedGroup]:
        runtime = self.runtime
        for domain, opset in model.opsets.items():
            newest = self.newest_import(domain) or opset
            if opset > newest:
                reason = f"{runtime.name} supports opset {newest} of {domain}, the model has {opset}"
                remedy = f"convert the model to opset {newest} or older"
                yield UnsupportedGroup(("model",), "", {}, reason, remedy, VERSION)
        newest = runtime.ir_version or model.ir_version
        if model.ir_version > newest:
            reason = f"{runtime.name} supports IR version {newest}, the model has {model.ir_version}"
            remedy = f"convert the model to IR version {newest}"
            yield UnsupportedGroup(("model",), "", {}, reason, remedy, VERSION)
        if self._schemas is not None:
            for graph, name in model.repeated_names:
                reason = f"{runtime.name} refuses two nodes with the same name {name!r}"
                label, remedy = "nodes with the same name", "rename one of the nodes"
                yield UnsupportedGroup((graph,), "", {}, reason, remedy, label, is_convertible=False)
        yield from self._input_problems(model)
        yield from self._tensor_problems(model)
        for (domain, operator), places in model.unimported.items():
            reason = f"the model, or the function with the node, has no opset import of {domain}"
            remedy = f"add an opset import of {domain}"
            yield UnsupportedGroup(tuple(places), operator, {}, reason, remedy, is_convertible=False)
        yield from self._call_problems(model)

    def _call_problems(self, model: ModelNodes) -> Iterator[UnsupportedGroup]:
        name = self.runtime.name
        for function, calls in model.calls.items():
            found: defaultdict[str, list[str]] = defaultdict(list)
            for each in calls:
                if not self.runtime.expands_functions:
                    found[f"{name} does not accept local functions"].append(each.place)
                elif self._schemas is not None and model.has_closed_domain(each):
                    found[f"{name} does not call local functions of {each.domain}"].append(each.place)
                elif self._schemas is not None and each.output_count < each.function_output_count:
                    reason = f"the function has {each.function_output_count} outputs, not {each.output_count}"
                    found[f"{name} refuses the call: {reason}"].append(each.place)
            for reason, places in found.items():
                yield UnsupportedGroup(tuple(places), function, {}, reason, "inline the functions")

    def _input_problems(self, model: ModelNodes) -> Iterator[UnsupportedGroup]:
        runtime = self.runtime
        if self.needs_ranks(model):
            for name in model.unranked_inputs:
                reason = f"{runtime.name} refuses models with inputs of unknown rank, such as {name!r}"
                place, label = f"graph, input {name!r}", "inputs of unknown rank"
                option = f"--shape {quote(f'{name}=...')} (shapes= in Python)"
                remedy = f"declare the shape of {name!r} with {option} of `opshift convert` or `opshift fit`"
                yield UnsupportedGroup((place,), "", {}, reason, remedy, label, is_convertible=False)
        for name, element_type in model.overridable.items():
            if element_type in runtime.constant_types:
                reason = f"{runtime.name} refuses an initializer in {element_type} that callers can override"
                place, label = f"graph, initializer {name!r}", f"initializers in {element_type} as inputs"
                remedy = "make the initializer constant: opshift doctor --fix"
                yield UnsupportedGroup((place,), "", {}, reason, remedy, label, is_convertible=False)

    def _tensor_problems(self, model: ModelNodes) -> Iterator[UnsupportedGroup]:
        runtime = self.runtime
        if not runtime.unread_types and not runtime.raw_types and runtime.reads_empty_constants:
            return
        for place, tensor in model.tensors:
            name = NAME_BY_NUMBER.get(tensor.data_type)
            if name in runtime.unread_types:
                reason = f"{runtime.name} does not read constants in {name}"
                remedy = "remove the constant, or store it in a different type"
                yield UnsupportedGroup((place,), "", {}, reason, remedy, f"constants in {name}")
            elif name in runtime.raw_types and has_typed_field(tensor) and 0 not in tensor.dims:
                reason = f"{runtime.name} reads constants in {name} only if they are stored as raw bytes"
                remedy = "use `opshift fit`, which stores them as raw bytes"
                yield UnsupportedGroup((place,), "", {}, reason, remedy, f"typed constants in {name}")
            elif is_misread(tensor, runtime):
                result = f"in {name} with another type" if runtime.reads_empty_constants else "as a scalar"
                reason = f"{runtime.name} reads a constant without elements {result}"
                remedy = "use `opshift fit`, which replaces the constant by nodes"
                yield UnsupportedGroup((place,), "", {}, reason, remedy, "constants without elements")

    def _missing_kernels(self, model: ModelNodes, groups: Iterable[NodeGroup]) -> Iterator[UnsupportedGroup]:
        for group in groups:
            first = group.nodes[0]
            identity, newest = self._lookup.identity(first), self.runtime.opsets.get(first.domain)
            if newest and identity.since_version > newest < model.opsets.get(first.domain, 0):
                continue  # the version is from a newer opset: `_model_problems` reports the opset
            if not first.scope.opset_of(first.domain):
                continue  # `_model_problems` reports the missing import
            has_kernel = self._lookup.has_kernel_without_notes(group, model)
            if has_kernel:
                continue
            other = self._fallback
            if has_kernel is False and other and other._lookup.has_kernel_without_notes(group, model):
                self._notes.fallback[str(identity)] = None
                continue
            yield from self._group_problems(group, model)

    def _group_problems(self, group: NodeGroup, model: ModelNodes) -> Iterator[UnsupportedGroup]:
        """Yield the nodes of a group that the runtime does not implement, by reason, and add notes."""
        first = group.nodes[0]
        answers = [(kind, self._reason(kind[0], model)) for kind in self._kinds(group, model)]
        if not any(reason for _, reason in answers):
            return
        identity, own = self._lookup.identity(first), self._lookup.kernel(first)
        reasons = {id(node): reason for kind, reason in answers for node in kind}
        places: defaultdict[str, list[str]] = defaultdict(list)
        for node in group.nodes:
            places[reasons[id(node)]].append(node.place)
        places.pop("", None)
        for reason, found in places.items():
            known, remedy = {name: each for name, each in first.types if each}, own.remedy
            introduced = introduced_later(first)
            if introduced:
                reason = f"{reason}; {first.domain} has {first.node.op_type} since opset {introduced}"
                remedy = refusal_cause(NotYetIntroduced.code).remedy
            elif internal := first.scope.registry.releases.internal_domains.get(first.domain):
                reason, remedy = f"{reason}; {internal.meaning}", internal.remedy
            elif first.operator is None:
                remedy = remedy or refusal_cause(UnknownOperator.code).remedy
            can_convert = first.operator is not None and not introduced
            yield UnsupportedGroup(
                tuple(found), str(identity), known, reason, remedy, is_convertible=can_convert
            )

    def _kinds(self, group: NodeGroup, model: ModelNodes) -> list[list[ModelNode]]:
        """Return the nodes of a group in lists; the nodes of a list have equal answers to all `_questions`.

        Most runtimes ask the same questions, so `NodeGroup` caches the answers for all runtimes.
        """
        first = group.nodes[0]
        checks: list[RuntimeCheck] = [self]
        while checks[-1]._fallback is not None:
            checks.append(checks[-1]._fallback)
        questions = {each: answer for check in checks for each, answer in check._questions(first, model)}
        if first.operator is not None and not questions and all(each._schemas is None for each in checks):
            return [group.nodes]
        return group.kinds({**SCHEMA_QUESTION, **questions})

    def _questions(self, node: ModelNode, model: ModelNodes) -> Iterator[tuple[Hashable, _Answer]]:
        """Yield questions on which support for a node depends, each with the function that answers it."""
        identity, has_kernel = self._lookup.identity(node), bool(self._lookup.kernel(node))
        reads_bodies = not has_kernel and self.runtime.expands_functions
        errors = self.runtime.errors_of(identity) if has_kernel or reads_bodies or self._refuses_wrong else ()
        for each in (*self.runtime.restrictions_of(identity), *errors):
            if depends_on_node(each, node):
                yield self._lookup.question(each, model)
        if reads_bodies:
            question = "body", self.runtime.expands_outdated_bodies
            yield question, lambda each: self._lookup.uses_body(each) and model.body(each)

    def _reason(self, node: ModelNode, model: ModelNodes) -> str:
        """Return the reason why neither the runtime nor its fallback implements a node; empty if one does."""
        if self._schemas is not None and (problem := schema_problem(node, self._schemas)):
            name = f"{node.domain}.{node.node.op_type}"
            return f"{self.runtime.name} refuses the node: in its schema of {name}, {problem}"
        reason = self._own_reason(node, model)
        if reason and self._fallback is not None and self._falls_back(node, model, self._fallback):
            self._notes.fallback[str(self._lookup.identity(node))] = None
            return ""
        return reason

    def _falls_back(self, node: ModelNode, model: ModelNodes, other: RuntimeCheck) -> bool:
        """Return whether the fallback runtime implements a node; if it does, add its notes."""
        other._notes = _Notes()
        if other._reason(node, model):
            return False
        self._notes.warnings.update(other._notes.warnings)
        self._notes.wrong.update(other._notes.wrong)
        self._notes.uncertain.update(other._notes.uncertain)
        self._notes.doubtful.update(other._notes.doubtful)
        return True

    def _own_reason(self, node: ModelNode, model: ModelNodes) -> str:
        runtime, identity, own = self.runtime, self._lookup.identity(node), self._lookup.kernel(node)
        errors = (each for each in runtime.errors_of(identity) if self._refuses_wrong and not each.sometimes)
        for each in (*runtime.restrictions_of(identity), *errors):
            is_refused = self._lookup.concerns(each, node, model)
            if is_refused and not each.sometimes:
                return f"{runtime.name} refuses the node: {each.reason}"
            if is_refused is not False:
                self._notes.uncertain[f"{identity}: {each.reason}"] = None
                self._notes.doubtful[str(identity)] = None
        if own.kernel is not None and (problem := type_problem(node, own.kernel)):
            return f"{runtime.name} refuses the node: {problem}"
        if own.kernel is not None:
            self._add_notes(node, own.kernel, model)
            return ""
        is_known = identity.since_version <= runtime.opsets.get(node.domain, 0)
        if not (is_known and self._lookup.uses_body(node)):
            return own.reason
        return self._reason_in_body(node, own, model)

    def _reason_in_body(self, node: ModelNode, own: Support, model: ModelNodes) -> str:
        """Return why the function body of a node is not implemented; empty if it is, or is unknown."""
        if problem := self._misordered(node, model):
            return problem
        body = model.body(node)
        if isinstance(body, CannotConvert):
            if body.code in INVALID_BODIES:
                return f"{own.reason}{IN_BODY}{body.reason}"
            unknown = f"{self._lookup.identity(node)}: its function body is unknown"
            self._notes.uncertain[f"{unknown}: {body.reason}"] = None
            return ""
        if body not in self._bodies:
            outer, self._notes = self._notes, _Notes()
            inner = next(filter(None, (self._reason(each, body) for each in body.nodes)), "")
            self._bodies[body], self._notes = (inner, self._notes), outer
        inner, notes = self._bodies[body]
        self._notes.update(notes)
        if inner:
            return f"{own.reason}{IN_BODY}{inner.rpartition(IN_BODY)[2]}"
        self._add_errors(node, model)
        return ""

    def _misordered(self, node: ModelNode, model: ModelNodes) -> str:
        """Return why a subgraph may not contain function bodies; empty if it may, or if this is uncertain."""
        attribute = self._misorders_functions_in.get(f"{node.domain}.{node.node.op_type}")
        if attribute is None:
            return ""
        for each, is_nested in model.nodes_in(node.scope.child(node.node.attribute(attribute))):
            if not self._has_several_nodes(each, model):
                continue
            name = each.node.op_type
            reason = f"it writes the nodes of the function body of {name} in `{attribute}` in the wrong order"
            if not is_nested:
                return f"{self.runtime.name} refuses the node: {reason}"
            # The optimizer moves nodes out of nested subgraphs if the condition of If is constant.
            self._notes.uncertain[
                f"{self._lookup.identity(node)}: {reason} if the optimizer moves it there"
            ] = None
            self._notes.doubtful[str(self._lookup.identity(node))] = None
        return ""

    def _has_several_nodes(self, node: ModelNode, model: ModelNodes) -> bool:
        """Return whether the runtime replaces a node by a function body that may have several nodes."""
        if self._has_kernel(node) or node.operator is None or not self._lookup.uses_body(node):
            return False
        # Assume several nodes for a body that depends on the node: the runtime may build a different body.
        body = model.body(node) if node.operator.body else None
        return not isinstance(body, ModelNodes) or len(body.nodes) > 1

    def _has_kernel(self, node: ModelNode) -> bool:
        """Return whether the runtime or its fallback has a kernel for a node."""
        return bool(self._lookup.kernel(node)) or (
            self._fallback is not None and self._fallback._has_kernel(node)
        )

    def _add_notes(self, node: ModelNode, kernel: Kernel, model: ModelNodes) -> None:
        self._add_errors(node, model)
        if any(each is None and name in kernel.types for name, each in node.types):
            self._notes.uncertain[f"{self._lookup.identity(node)}: an element type is unknown"] = None
        if self._lookup.lacks_types(node, kernel) and (
            not self._fallback or self._fallback._reason(node, model)
        ):
            reason = "the types of its kernels are not documented"
            self._notes.uncertain[f"{self._lookup.identity(node)}: {reason}"] = None

    def _add_errors(self, node: ModelNode, model: ModelNodes) -> None:
        operator = self._lookup.identity(node)
        for each in self.runtime.errors_of(operator):
            if self._lookup.concerns(each, node, model) is not False:
                self._notes.warnings[f"{operator}: {each.reason}"] = None
                self._notes.doubtful[str(operator)] = None
                if not each.sometimes:
                    self._notes.wrong[str(operator)] = None

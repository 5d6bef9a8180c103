"""Conversion of a model for a runtime at certain opsets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import replace
from itertools import chain

from opshift.adapters.core.equivalents import Equivalent, TypeBridge, Unwanted
from opshift.analysis.fit.bridges import Bridges
from opshift.analysis.fit.readable_constants import compute_empty_constants, write_raw_constants
from opshift.analysis.fit.result import FitReport
from opshift.analysis.fit.targets import (
    APPROXIMATION_COST,
    TargetOpsets,
    find_equivalents,
    replacements_of_unknown,
)
from opshift.converter.convert import try_convert
from opshift.converter.options import Options, Target
from opshift.converter.refusals import Refusal
from opshift.converter.report import Report
from opshift.model.errors import OpshiftError
from opshift.model.files import gc_paused
from opshift.model.graphs import domains_only_in_training
from opshift.model.messages import ModelProto
from opshift.model.operator_ids import DEFAULT_DOMAIN, OperatorId, opset_imports, without_version
from opshift.registry.errors import NotYetIntroduced
from opshift.registry.runtimes.runtime import Runtime
from opshift.runtimes.check_support import RuntimeCheck, UnsupportedGroup
from opshift.runtimes.model_nodes import ModelNodes
from opshift.runtimes.model_notes import name_nodes, remove_omitted_inputs, remove_refused_sizes

MAX_ROUNDS = 12
"""Maximum number of conversions after the first one, because each may emit operators without a kernel."""


class Attempt:
    """Conversion of a copy of a model to target opsets, and then of its nodes without a kernel.

    Nodes that the check `strict` refuses are converted, too, but do not prevent the model from running if
    they cannot be converted.

    Attributes:
        target: the opsets.
        model: the converted copy.
        missing: nodes that prevent the model from running; empty if the runtime implements all nodes. After a
            refused conversion, only the refused nodes: see `missing_with_others`.
    """

    # The collector pauses during one attempt only: the garbage of all attempts might need much memory.
    @gc_paused
    def __init__(
        self,
        model: ModelProto,
        nodes: ModelNodes,
        target: TargetOpsets,
        runtime: Runtime,
        check: RuntimeCheck,
        options: Options,
        strict: RuntimeCheck | None = None,
    ) -> None:
        self.target = target
        self.opset = target.opsets[DEFAULT_DOMAIN]
        self._check = check
        self._strict = strict or check
        self._registry = options.registry
        self._runtime = runtime
        self._bridges = Bridges(runtime, options.registry, self.opset, options.allow)
        self._options = replace(options, target=Target({}, runtime.ir_version))
        self._refused: set[Equivalent] = set()
        self._called = _called_domains(nodes, check)
        self._convert_copy(model, nodes)
        if self._depends_on_inlining():
            # Inline functions: nodes may be convertible for one call of a function, but not for all calls.
            self._called = frozenset()
            self._convert_copy(model, nodes)
        # The runtime may have a kernel of an equivalent operator, but refuse its nodes: convert without it.
        while self.missing and (refused := set(self._refused_equivalents())):
            self._refused |= refused
            self._convert_copy(model, nodes)

    def _convert_copy(self, model: ModelProto, nodes: ModelNodes) -> None:
        """Convert a copy of the model, without the equivalent operators that the runtime refused before."""
        self.model = deepcopy(model)
        self._reports: list[Report] = []
        self._replaceable: tuple[UnsupportedGroup, ...] = ()
        self._failed: set[Unwanted] = {*self._refused}
        unknown = replacements_of_unknown(nodes, self.target.opsets, self._runtime, self._registry)
        self._without: dict[Unwanted, None] = dict.fromkeys(
            each for each in unknown if each not in self._refused
        )
        # Domains that only training graphs use may stay: a runtime for inference ignores them.
        unused = domains_only_in_training(model)
        foreign = frozenset(nodes.opsets).difference(self._runtime.opsets, unused, self._called)
        self._first = replace(
            self._options,
            target=Target(self.target.opsets, self._runtime.ir_version),
            without=foreign.union(self._without),
        )
        self._refusals = self._convert(self._first)
        self.missing = tuple(map(refused_node, self._refusals)) or self._replace_missing()

    def _depends_on_inlining(self) -> bool:
        """Return whether inlining the functions that were kept may change the result.

        It may if the runtime refuses the model itself, a call, or a node of a function.
        """
        return any(
            not place.startswith("graph")
            or ", function " in place
            or without_version(each.operator).rpartition(".")[0] in self._called
            for each in (self.missing if self._called else ())
            for place in each.places
        )

    def missing_with_others(self) -> tuple[UnsupportedGroup, ...]:
        """Return the refused nodes, and the converted nodes that prevent the model from running.

        Return `listed` if no node is refused, or if the other nodes cannot be converted either. Call this
        method only once, because it converts the model further.
        """
        places = frozenset(each.place for each in self._refusals)
        if not places or self._convert(replace(self._first, skipped=places)):
            return self.listed
        missing = self._replace_missing()
        others = (each for each in missing if places.isdisjoint(map(_planned_place, each.places)))
        return (*self.missing, *others)

    def _refused_equivalents(self) -> Iterator[Equivalent]:
        """Yield the equivalents whose replacement nodes the runtime refuses."""
        names = {each.operator for each in self.missing}
        for each in self._without:
            if isinstance(each, Equivalent) and str(each.replacement) in names:
                yield each

    @property
    def is_refused(self) -> bool:
        """Whether the conversion to the target opsets is refused."""
        return bool(self._refusals)

    @property
    def listed(self) -> tuple[UnsupportedGroup, ...]:
        """`missing`, or the nodes that lacked a kernel before any replacement, if these are fewer."""
        return min(self.missing, self._replaceable or self.missing, key=count_nodes)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Known wrong results of kernels that the converted copy uses."""
        return self._support.warnings

    @property
    def wrong(self) -> tuple[str, ...]:
        """Operator versions with wrong results; replacing their nodes avoids these results."""
        return self._support.wrong

    @property
    def added_nodes(self) -> int:
        """Number of nodes that the conversions added."""
        return sum(max(each.added_nodes, 0) for each in self._reports)

    @property
    def cost(self) -> int:
        """Number of added nodes, plus the cost of inexact conversions."""
        return self.added_nodes + APPROXIMATION_COST * sum(len(each.allowances) for each in self._reports)

    def report(self, tried: int) -> FitReport:
        """Return the report of an attempt that fits; `tried` is the number of tried target opsets."""
        return FitReport(
            self._runtime.name,
            opset_imports(self.model.opset_import, self.model.ir_version),
            self.model.ir_version,
            self.cost,
            tuple(str(each) for each in self._without if self._is_used(each)),
            tuple(str(each) for each in self._without if isinstance(each, TypeBridge)),
            tuple(self._reports),
            tried,
            self.warnings,
            self._support.uncertain,
        )

    def _is_used(self, unwanted: Unwanted) -> bool:
        """Return whether the report lists an operator as replaced: an equivalent only if a node uses it."""
        if isinstance(unwanted, TypeBridge):
            return False
        if not isinstance(unwanted, Equivalent):
            return True
        old, new = str(unwanted.operator), str(unwanted.replacement)
        return any(
            each.operator == old and new in each.becomes
            for report in self._reports
            for each in report.changed
        )

    def _convert(self, options: Options) -> tuple[Refusal, ...]:
        """Convert the model if no node is refused, and return the refusals."""
        result, plan = try_convert(self.model, options)
        if result is not None:
            self.model = result
            self._reports.append(Report.of(plan, result))
            # Done for every runtime, because onnxruntime crashes on some nodes with omitted inputs, such as
            # LayerNormalization(x, s, "").
            remove_omitted_inputs(result, self._registry)
            compute_empty_constants(result, self._runtime)
            if self._runtime.raw_types:
                write_raw_constants(result, self._runtime.raw_types)
            if self._runtime.needs_names:
                name_nodes(result, self._runtime.needs_names)
        return plan.refusals

    def _replace_missing(self) -> tuple[UnsupportedGroup, ...]:
        """Convert nodes without a kernel repeatedly, and return the nodes that still have none."""
        for _ in range(MAX_ROUNDS):
            nodes = ModelNodes(self.model, self._registry)
            self._support = self._strict.check(nodes)
            self._replaceable = self._replaceable or self._support.missing
            remedies = {place: each for each, places in self._remedies() for place in places}
            if not remedies:
                break
            # Nodes with a kernel stay unchanged; emitted nodes must not use an operator or type that was
            # replaced.
            kept = frozenset(_planned_place(each.place) for each in nodes.nodes).difference(remedies)
            new = dict.fromkeys(chain.from_iterable(remedies.values()))
            refusals = self._convert(
                replace(self._options, without=frozenset({*self._without, *new}), skipped=kept)
            )
            if not refusals:
                self._without |= new
            refused = [remedies.get(each.place, ()) for each in refusals]
            self._failed.update(chain.from_iterable(refused) if all(refused) else new)
        else:
            nodes = ModelNodes(self.model, self._registry)
        operators = self._runtime.refuses_sizes_after
        # Remove refused sizes last, because conversions use declared sizes.
        is_changed = bool(operators) and remove_refused_sizes(nodes, operators)
        if is_changed:
            nodes = ModelNodes(self.model, self._registry)
        if is_changed or self._strict is not self._check:
            self._support = self._check.check(nodes)
        return self._support.missing

    def _remedies(self) -> Iterator[tuple[tuple[Unwanted, ...], list[str]]]:
        """Yield the next replacement to try for nodes without a kernel, each with the places of the nodes."""
        for missing in self._support.missing:
            name = without_version(missing.operator)
            choices: tuple[tuple[Unwanted, ...], ...] = (*self._find_replacements(missing), (name,))
            for unwanted in filter(any, choices):
                if self._failed.isdisjoint(unwanted) and not self._without.keys() >= set(unwanted):
                    yield unwanted, list(map(_planned_place, missing.places))
                    break

    def _find_replacements(self, missing: UnsupportedGroup) -> tuple[tuple[Unwanted, ...], ...]:
        """Return two tuples, the equivalents and the type bridges for a node; `()` without a definition."""
        try:
            operator = OperatorId.parse(missing.operator)
        except OpshiftError:  # a call of a function, or a property of the model
            return ()
        version = self._registry.known_at(operator.op_type, operator.since_version, operator.domain)
        if version is None:
            return ()
        found = find_equivalents(version, missing.types, self._runtime, self._registry)
        pairs = tuple(each for each in found if each not in self._refused)
        return pairs, self._bridges.find(version, missing.types)


def _called_domains(nodes: ModelNodes, check: RuntimeCheck) -> frozenset[str]:
    """Return the domains of called local functions that a model for the runtime may import."""
    if not check.runtime.expands_functions:
        return frozenset()
    domains = {each.domain for calls in nodes.calls.values() for each in calls}
    newest = {domain: check.newest_import(domain) for domain in domains}
    return frozenset(
        domain for domain, opset in newest.items() if opset is None or nodes.opsets.get(domain, 0) <= opset
    )


def _planned_place(place: str) -> str:
    """Return the place of a node in a plan: a plan names the function, but not its call."""
    _, separator, last = place.rpartition(", function ")
    return f"function {last}" if separator else place


def refused_node(refusal: Refusal) -> UnsupportedGroup:
    """Return a refused node as a missing kernel.

    If its operator is too new for the model, no other opset helps.
    """
    is_convertible = refusal.code != NotYetIntroduced.code
    return UnsupportedGroup(
        (refusal.place,), refusal.operator, {}, refusal.reason, refusal.remedy, is_convertible=is_convertible
    )


def count_nodes(missing: Iterable[UnsupportedGroup]) -> int:
    """Return the number of nodes in all groups."""
    return sum(len(each.places) for each in missing)

"""Choice of the opsets at which a model fits a runtime at the lowest cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice

from opshift.adapters.core.equivalents import Equivalent, TypeBridge, Unwanted
from opshift.analysis.distinct_nodes import with_distinct_nodes
from opshift.analysis.fit.bridges import Bridges
from opshift.analysis.fit.empty_constants import compute_empty_constants
from opshift.analysis.fit.find_equivalents import find_equivalents, replacements_of_unknown
from opshift.analysis.fit.nearest_failure import count_nodes, nearest_failure, refused_node
from opshift.analysis.fit.raw_constants import write_raw_constants
from opshift.analysis.fit.result import DoesNotFit, FitReport
from opshift.analysis.fit.targets import (
    APPROXIMATION_COST,
    IMPOSSIBLE_COST,
    NodeCosts,
    TargetOpsets,
    rank_targets,
)
from opshift.analysis.refused_opsets import RefusedOpsets
from opshift.converter.convert import try_convert
from opshift.converter.options import Options, Target
from opshift.converter.refusals import Refusal
from opshift.converter.report import Report
from opshift.model.errors import OpshiftError
from opshift.model.files import gc_paused
from opshift.model.graphs import domains_only_in_training
from opshift.model.messages import ModelProto
from opshift.model.operator_ids import DEFAULT_DOMAIN, OperatorId, opset_imports, without_version
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry
from opshift.registry.runtimes.runtime import Runtime
from opshift.runtimes.check_support import MissingKernel, RuntimeCheck
from opshift.runtimes.model_nodes import ModelNodes
from opshift.runtimes.omitted_inputs import remove_omitted_inputs
from opshift.runtimes.refused_sizes import remove_refused_sizes
from opshift.runtimes.unnamed_nodes import name_nodes

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
            # Nodes may be convertible for one call of a function, but not for all of its calls.
            self._called = frozenset()
            self._convert_copy(model, nodes)
        # The runtime may have a kernel for an equivalent operator, but refuse the attributes of its nodes.
        while self.missing and (refused := set(self._refused_equivalents())):
            self._refused |= refused
            self._convert_copy(model, nodes)

    def _convert_copy(self, model: ModelProto, nodes: ModelNodes) -> None:
        """Convert a copy of the model, without the equivalent operators that the runtime refused before."""
        self.model = deepcopy(model)
        self._reports: list[Report] = []
        self._replaceable: tuple[MissingKernel, ...] = ()
        self._failed: set[Unwanted] = {*self._refused}
        unknown = replacements_of_unknown(nodes, self.target.opsets, self._runtime, self._registry)
        self._without: dict[Unwanted, None] = dict.fromkeys(
            each for each in unknown if each not in self._refused
        )
        # A runtime for inference ignores training graphs, and domains that only training graphs use.
        unused = domains_only_in_training(model)
        foreign = frozenset(nodes.opsets).difference(self._runtime.opsets, unused, self._called)
        self._first = replace(
            self._options,
            target=Target(self.target.opsets, self._runtime.ir_version),
            without=foreign.union(self._without),
        )
        self._refusals = self._convert(self._first)
        self.missing = tuple(map(refused_node, self._refusals)) or self._complete()

    def _depends_on_inlining(self) -> bool:
        """Return whether the runtime refuses the model, a call of a local function, or a node in one."""
        return any(
            not place.startswith("graph")
            or ", function " in place
            or without_version(each.operator).rpartition(".")[0] in self._called
            for each in (self.missing if self._called else ())
            for place in each.places
        )

    def missing_with_others(self) -> tuple[MissingKernel, ...]:
        """Return the nodes that the conversion refuses, and the others that prevent the model from running.

        Call this method only once, because it converts the model further.
        """
        places = frozenset(each.place for each in self._refusals)
        if not places or self._convert(replace(self._first, skipped=places)):
            return self.listed
        others = (each for each in self._complete() if places.isdisjoint(map(_planned_place, each.places)))
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
    def listed(self) -> tuple[MissingKernel, ...]:
        """`missing`, or the nodes without a kernel before their replacement if these are fewer."""
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
        """Return whether the report lists a replaced operator; an equivalent counts if a node uses it."""
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
            # Checked for every runtime, because onnxruntime crashes on some nodes, such as
            # LayerNormalization(x, s, "").
            remove_omitted_inputs(result, self._registry)
            compute_empty_constants(result, self._runtime)
            if self._runtime.raw_types:
                write_raw_constants(result, self._runtime.raw_types)
            if self._runtime.needs_names:
                name_nodes(result, self._runtime.needs_names)
        return plan.refusals

    def _complete(self) -> tuple[MissingKernel, ...]:
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
        # Conversions use declared sizes, so remove them last.
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

    def _find_replacements(self, missing: MissingKernel) -> tuple[tuple[Unwanted, ...], ...]:
        """Return the equivalents and the type bridges for a node; both may be empty."""
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


MAX_COMPARED = 3
"""Maximum number of fitting opsets to compare; further opsets have higher estimated costs."""

MAX_AVOIDING = 5
"""Maximum number of opsets to try in order to avoid wrong results of kernels."""

MAX_FAILED = 5
"""Number of failed opsets after which only opsets that may still fit are tried."""

MAX_ADDED_IN_FAILED = 16_384
"""Number of nodes that failed attempts may add together; then no further opset is tried."""


class _Failures:
    """Nodes that prevented the model from fitting at tried opsets, to predict failures at other opsets."""

    def __init__(self, nodes: ModelNodes, runtime: Runtime, options: Options) -> None:
        self._nodes = {each.place: each for each in nodes.nodes}
        self._runtime = runtime
        self._options = options
        self._refused = RefusedOpsets(nodes.opsets)
        self._missing: set[tuple[str, str]] = set()
        """Places and operator versions of nodes without a replacement."""
        self._failed: set[tuple[int, str, int]] = set()
        """Opset of the default domain, and domain and opset of a node that prevented the fit there."""

    def add(self, attempt: Attempt) -> None:
        """Add the nodes that prevent an attempt from fitting."""
        if attempt.is_refused:
            self._refused.add(attempt.target.opsets)
            return
        for place in chain.from_iterable(each.places for each in attempt.missing):
            if node := self._nodes.get(place):
                opset = attempt.target.opsets.get(node.domain, 0)
                self._failed.add((attempt.opset, node.domain, opset))
        registry = self._options.registry
        bridges = Bridges(self._runtime, registry, attempt.opset, self._options.allow)
        costs = NodeCosts(self._runtime, registry, bridges)
        for missing in filter(lambda each: each.operator, attempt.missing):
            found = OperatorId.parse(missing.operator)
            operator = registry.operator(found.op_type, found.domain)
            version = operator.at(found.since_version) if operator else None
            if (
                operator is None or version is None
            ):  # a call of a function, or a node without a definition of its operator
                continue
            if costs.of_replacement(operator, version, missing.types) >= IMPOSSIBLE_COST:
                self._missing.update((place, missing.operator) for place in missing.places)

    def prevent(self, target: TargetOpsets) -> bool:
        """Return whether a node that prevented a fit at other opsets prevents it at the target opsets.

        The conversion of a node depends only on the opsets of its domain and of the default domain.
        """
        default = target.opsets[DEFAULT_DOMAIN]
        return (
            target.opsets in self._refused
            or any((default, *each) in self._failed for each in target.opsets.items())
            or any(self._version(place, target.opsets) == operator for place, operator in self._missing)
        )

    def _version(self, place: str, opsets: Mapping[str, int]) -> str | None:
        """Return the operator version of the node at a place after a conversion without replacements."""
        node = self._nodes.get(place)
        if node is None:
            return None
        version = self._options.registry.known_at(node.node.op_type, opsets.get(node.domain, 0), node.domain)
        return str(version.id) if version else None


OTHER_RUNTIME = "choose another runtime: `opshift runs` lists those that run the model"


def cheapest(
    model: ModelProto, nodes: ModelNodes, runtime: Runtime, options: Options
) -> tuple[ModelProto, FitReport]:
    """Return the cheapest conversion of a model, preferably one without known wrong results of kernels.

    Raises:
        DoesNotFit: no conversion fits the model.
    """
    trials = _Trials(model, nodes, runtime, options)
    ranked = rank_targets(nodes, runtime, options.registry, options.allow)
    if trials.check.needs_ranks(nodes):
        ranked = ranked[:1]  # no conversion adds ranks to inputs
    fitting, failed = _compare(trials, ranked)
    if not fitting:
        fitting = [trials.nearest(failed)]
    best = min(fitting, key=lambda each: each.cost)
    if best.wrong:
        strict = RuntimeCheck(runtime, refuses_wrong=True)
        others = _with_other_versions(ranked, best, options.registry)
        for target in islice((best.target, *others), MAX_AVOIDING):
            attempt = trials.attempt(target, strict)
            if not attempt.missing and len(attempt.wrong) < len(best.wrong):
                best = attempt
            if not best.wrong:
                break
    return best.model, best.report(len(fitting) + len(failed))


class _Trials:
    """Attempts to convert a model; after the first, a copy with one node of each kind is tried first."""

    def __init__(self, model: ModelProto, nodes: ModelNodes, runtime: Runtime, options: Options) -> None:
        self._model = model
        self._nodes = nodes
        self._runtime = runtime
        self._options = options
        self.check = RuntimeCheck(runtime)
        self._is_first = True
        self._fitting: dict[bytes, Attempt] = {}
        """Attempts that fit, by the serialized converted copy with one node of each kind."""
        self.failures = _Failures(nodes, runtime, options)

    @cached_property
    def _distinct_model(self) -> ModelProto | None:
        return with_distinct_nodes(self._model, self._options.registry)

    def attempt(self, target: TargetOpsets, strict: RuntimeCheck | None = None) -> Attempt:
        """Return the attempt to convert the model to target opsets; a failed attempt may be of the copy.

        If the converted copy has the same nodes as at an earlier target, return the attempt for that target.
        """
        if self._is_first:  # most models fit at the first opset, so create no copy for it
            self._is_first = False
            attempt = self._attempt_at(self._model, target, strict)
            if not attempt.missing:
                return attempt
        if self._distinct_model is None:
            return self._attempt_at(self._model, target, strict)
        attempt = self._attempt_at(self._distinct_model, target, strict)
        if attempt.missing:
            return attempt
        nodes = _without_versions(attempt.model)
        if strict is None and nodes in self._fitting:
            return self._fitting[nodes]
        attempt = self._attempt_at(self._model, target, strict)
        if strict is None and not attempt.missing:
            self._fitting[nodes] = attempt
        return attempt

    def _attempt_at(self, model: ModelProto, target: TargetOpsets, strict: RuntimeCheck | None) -> Attempt:
        return Attempt(model, self._nodes, target, self._runtime, self.check, self._options, strict)

    def nearest(self, failed: Sequence[Attempt]) -> Attempt:
        """Repeat the best failed attempt of the copy with the whole model; return the attempt if it fits.

        Raises:
            DoesNotFit: it does not fit; the error names the opset with the fewest missing nodes.
        """
        best, missing = nearest_failure(failed, self._nodes)
        if self._distinct_model is not None:
            best = self._attempt_at(self._model, best.target, None)
            if not best.missing:
                return best
            missing = best.missing_with_others()
        raise DoesNotFit(
            self._runtime.name,
            best.opset,
            [replace(each, remedy=each.remedy or OTHER_RUNTIME) for each in missing],
        )


def _without_versions(model: ModelProto) -> bytes:
    """Return a serialized model without opset imports."""
    copy = deepcopy(model)
    for each in (copy, *copy.functions):
        each.ClearField("opset_import")
    return copy.SerializeToString(deterministic=True)


def _compare(trials: _Trials, ranked: Sequence[TargetOpsets]) -> tuple[list[Attempt], list[Attempt]]:
    """Try targets in order; return the attempts that fit, and the attempts that fail."""
    fitting: list[Attempt] = []
    failed: list[Attempt] = []
    for target in ranked:
        least = min((each.cost for each in fitting), default=IMPOSSIBLE_COST)
        # Estimates include missing kernels, but not restrictions of kernels or the nodes that adapters emit.
        is_impossible = target.cost >= least and (fitting or failed)
        if is_impossible and (fitting or not _may_be_nearer(target.cost, ranked[0].cost, len(failed))):
            break
        if len(failed) >= MAX_FAILED:
            if sum(each.added_nodes for each in failed) > MAX_ADDED_IN_FAILED:
                break
            if trials.failures.prevent(target):
                continue
        attempt = trials.attempt(target)
        if attempt.missing:
            failed.append(attempt)
            trials.failures.add(attempt)
        else:
            fitting.append(attempt)
        if len(fitting) == MAX_COMPARED:
            break
    return fitting, failed


def _with_other_versions(
    ranked: Sequence[TargetOpsets], best: Attempt, registry: Registry
) -> Iterator[TargetOpsets]:
    """Yield targets with other versions of the operators with wrong results, each set of versions once."""
    wrong = list(map(OperatorId.parse, best.wrong))

    def versions_at(target: TargetOpsets) -> tuple[OperatorVersion | None, ...]:
        opsets = target.opsets
        return tuple(
            registry.known_at(each.op_type, opsets.get(each.domain, 1), each.domain) for each in wrong
        )

    tried = [versions_at(best.target)]
    for target in ranked:
        found = versions_at(target)
        if found not in tried:
            tried.append(found)
            yield target


def _may_be_nearer(cost: int, least: int, failed: int) -> bool:
    """Return whether an opset may, by its estimated cost, have as few missing nodes as the cheapest one."""
    return failed < MAX_FAILED and cost // IMPOSSIBLE_COST <= least // IMPOSSIBLE_COST

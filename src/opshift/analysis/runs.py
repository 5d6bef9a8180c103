"""Find the runtimes that run a model, unchanged or after a conversion."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import cached_property
from itertools import groupby
from typing import Final, NamedTuple, Protocol, TypeVar

from opshift.analysis.distinct_nodes import lacks_nodes, with_distinct_nodes
from opshift.analysis.refused_opsets import RefusedOpsets
from opshift.converter.convert import try_convert
from opshift.converter.options import Options
from opshift.converter.refusals import group_refusals
from opshift.converter.report import Report
from opshift.converter.streaming.external_data import open_with_data_files
from opshift.converter.streaming.weights import MIN_STREAMED_FILE
from opshift.inference.shared_facts import SharedFacts
from opshift.model.binary_files import is_readable
from opshift.model.files import MAX_MESSAGE_BYTES, ModelLike, gc_paused, model_of, reading_onnx_ir
from opshift.model.messages import ModelProto
from opshift.model.operator_ids import DEFAULT_DOMAIN, OperatorId, imported_default_opset, without_version
from opshift.model.plain_data import Json, json_values
from opshift.model.shared_data import FrozenRecord
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry, registry_or_default
from opshift.registry.runtimes.files import RuntimeLike, runtime_files, runtime_of
from opshift.registry.runtimes.runtime import Runtime
from opshift.runtimes.check_support import ModelSupport, RuntimeCheck
from opshift.runtimes.model_nodes import ModelNode, ModelNodes, ordered
from opshift.runtimes.verdicts import AFTER_CONVERSION, DOES_NOT_RUN, MAY_RUN, RUNS

MIN_FAILURES: Final = 2
"""Number of failed conversions after which further ones are first tried with a copy, see `_attempt`."""

MIN_REMAINING: Final = 5
"""Minimum number of remaining opsets for a copy: making it takes as long as two or three conversions."""


class ConversionAttempt(FrozenRecord):
    """Conversion that was tried for a runtime that does not run the unchanged model."""

    opsets: Mapping[str, int]
    """Target opsets by domain, without domains that keep their opset."""
    ir_version: int | None
    """Target IR version; `None` if the runtime accepts the resulting IR version, or after a refusal."""
    added_nodes: int
    """Number of nodes that the conversion adds."""
    refusals: tuple[str, ...]
    """Summaries of the causes of refused nodes, one for each cause; empty if the conversion succeeds."""
    support: ModelSupport | None
    """Nodes of the converted model that the runtime does not run, and notes; `None` after a refusal."""

    @property
    def succeeds(self) -> bool:
        """Whether the runtime runs the converted model."""
        return self.support is not None and not self.support.missing


class RuntimeResult(FrozenRecord):
    """Result for one runtime: whether it runs the model, unchanged or after a conversion."""

    runtime: str
    evidence: str
    """Kind of source of the data about the runtime: `kernel_registry`, `documentation` or `measurement`."""
    support: ModelSupport
    """Nodes of the model that the runtime does not run, and notes."""
    conversion: ConversionAttempt | None = None
    """The conversion to the nearest opset after which the runtime runs the model.

    If no conversion helps, and the model imports an opset that is too new for the runtime, this is the failed
    conversion to the newest supported opset. Otherwise, and if no conversion is needed, it is `None`.
    """

    @property
    def verdict(self) -> str:
        """One of `runs`, `may run`, `after conversion` and `does not run`."""
        if not self.support.missing:
            return MAY_RUN if self.support.uncertain else RUNS
        return AFTER_CONVERSION if self.conversion and self.conversion.succeeds else DOES_NOT_RUN

    def as_dict(self) -> dict[str, Json]:
        """Return plain data for JSON."""
        return {"runtime": self.runtime, "verdict": self.verdict} | json_values(asdict(self))


class Runs(FrozenRecord):
    """Results of all checked runtimes for one model."""

    opsets: Mapping[str, int]
    """Opset imports of the model by domain."""
    ir_version: int
    results: tuple[RuntimeResult, ...]

    def __bool__(self) -> bool:
        """Return whether each runtime runs, or may run, the unchanged model."""
        return all(each.verdict in (RUNS, MAY_RUN) for each in self.results)

    def __str__(self) -> str:
        rows = group_releases(self.results, lambda each: each.verdict)
        return "\n".join(f"{label}: {verdict}" for label, verdict in rows)

    def to_dict(self) -> dict[str, Json]:
        """Return plain data for JSON."""
        results: list[Json] = [each.as_dict() for each in self.results]
        return {"opsets": dict(self.opsets), "ir_version": self.ir_version, "runtimes": results}


@reading_onnx_ir
def runs(
    model: ModelLike,
    runtimes: RuntimeLike | Iterable[RuntimeLike] | None = None,
    *,
    registry: Registry | None = None,
) -> Runs:
    """Return which runtimes run a model, as it is or after a conversion, and which nodes they do not run.

    Args:
        model: a model in any form that `convert_version` accepts.
        runtimes: names such as `onnxruntime-1.31`, paths of YAML files that describe runtimes, or `Runtime`
            objects; by default all runtimes that opshift has data for.
        registry: operator definitions; by default those of opshift and of installed packages.

    Raises:
        InvalidModel: the model, or a file of its weights, cannot be read.
        UsageError: there is no data about a runtime, or its file does not exist.
        DefinitionError: the file of a runtime is invalid.
    """
    if runtimes is None:
        runtimes = runtime_files()
    elif isinstance(runtimes, str | bytes) or not isinstance(runtimes, Iterable):
        runtimes = (runtimes,)
    chosen = _load(runtimes)
    with _without_weights(model) as source:
        candidates = _Candidates(source, registry_or_default(registry))
        return Runs(candidates.nodes.opsets, source.ir_version, tuple(candidates.results(chosen)))


Cells = TypeVar("Cells")


class NamedRuntime(Protocol):
    """Result that has the name of its runtime, such as `onnxruntime-1.31.1`."""

    @property
    def runtime(self) -> str:
        """Name of the runtime."""
        ...


AboutRuntime = TypeVar("AboutRuntime", bound=NamedRuntime)


def group_releases(
    results: Iterable[AboutRuntime], cells: Callable[[AboutRuntime], Cells]
) -> Iterator[tuple[str, Cells]]:
    """Merge consecutive releases with equal table cells; yield pairs (`onnxruntime 1.20 to 1.22`, cells)."""
    rows = groupby(results, lambda each: (each.runtime.rpartition("-")[0], cells(each)))
    for (product, found), group in rows:
        first, *others = [each.runtime.removeprefix(f"{product}-") for each in group]
        yield (f"{product} {first} to {others[-1]}" if others else f"{product}-{first}"), found


@gc_paused  # The records of all runtimes are many objects without garbage: collection would only take time.
def _load(runtimes: Iterable[RuntimeLike]) -> list[Runtime]:
    return [runtime_of(each) for each in runtimes]


@contextmanager
def _without_weights(model: ModelLike) -> Iterator[ModelProto]:
    """Yield a model; if it is large, with placeholders for weights, because each conversion copies it."""
    if not (isinstance(model, str | os.PathLike) or is_readable(model)):
        message, _ = model_of(model)
        if not MIN_STREAMED_FILE <= message.ByteSize() <= MAX_MESSAGE_BYTES:
            yield message
            return
        model = io.BytesIO(message.SerializeToString())
    with open_with_data_files(model) as found:
        yield found


class _Candidate(NamedTuple):
    """Result of a conversion: nodes (`None` if refused), causes of refusals, and number of added nodes."""

    nodes: ModelNodes | None
    refusals: tuple[str, ...]
    added_nodes: int


class _Search:
    """Search for the nearest opset after which one runtime runs a model.

    Attributes:
        check: determines whether the runtime implements the nodes of a model.
        support: support for the unchanged model.
        promising: target opsets to try (opset by domain), by their opset of the default domain.
        nearest: the conversion to report; `None` until one is recorded.
    """

    nearest: ConversionAttempt | None = None

    def __init__(
        self,
        runtime: Runtime,
        check: RuntimeCheck,
        support: ModelSupport,
        missing: Set[_OperatorTypes],
        promising: Mapping[int, Mapping[str, int]],
        *,
        keeps_failure: bool,
        is_hopeless: bool,
    ) -> None:
        """Prepare the search.

        `missing` are the operators that prevent the unchanged model from running.
        With `keeps_failure`, the first conversion is reported even if it does not help. With `is_hopeless`,
        the search ends after the first conversion, because none can help.
        """
        self.runtime = runtime
        self.check = check
        self.support = support
        self.promising = promising
        self._is_hopeless = is_hopeless
        self._keeps_failure = keeps_failure
        self._missing = missing
        self._failed: set[_OperatorTypes] = set()

    @property
    def reports_failure(self) -> bool:
        """Whether to report the next conversion even if it does not help."""
        return self._keeps_failure and self.nearest is None

    @property
    def has_failed(self) -> bool:
        """Whether nodes lacked kernels after an earlier conversion."""
        return bool(self._failed)

    @property
    def result(self) -> RuntimeResult:
        """Support for the unchanged model, with the conversion to report."""
        return RuntimeResult(self.runtime.name, self.runtime.evidence.kind, self.support, self.nearest)

    def add(self, attempt: ConversionAttempt) -> None:
        """Record the conversion to the next opset; the search ends if it succeeds."""
        if attempt.succeeds:
            self.nearest, self.promising = attempt, {}
            return
        if self.reports_failure:
            self.nearest = attempt
        if self._is_hopeless:
            self.promising = {}
        found = attempt.support.missing if attempt.support is not None else ()
        self._failed.update((each.operator, tuple(each.types.items())) for each in found)

    def support_of(self, converted: ModelNodes) -> ModelSupport:
        """Return the support for a converted model; without `reports_failure`, at most one missing kernel."""
        if self.reports_failure:
            return self.check.check(converted)
        # Operators that lacked kernels before probably lack them again: check these operators first.
        operators = {without_version(name) for name, _ in self._missing | self._failed}
        missing = self.check.find_missing(converted, operators)
        return ModelSupport((missing,)) if missing else self.check.check(converted, lists_all=False)

    def may_run_without_merging(self, attempt: ConversionAttempt) -> bool:
        """Return whether the full model may run, although the copy with distinct nodes does not.

        The copy merges nodes although restrictions may distinguish them, see `with_distinct_nodes`.
        """
        support = attempt.support
        return support is not None and all(
            ":" in each.operator and self.check.depends_on_distant_nodes(OperatorId.parse(each.operator))
            for each in support.missing
        )

    def fails_again(self, node: ModelNode, version: OperatorVersion | None) -> bool:
        """Return whether a node will lack a kernel: its version after the conversion lacked one before.

        Args:
            node: node of the unchanged model.
            version: its operator version after the next conversion; `None` if the registry has none.
        """
        if version is None or (version.has_function and self.runtime.expands_functions):
            return False
        types = tuple((name, each) for name, each in node.types if each)
        names = (f"{node.domain}.{node.node.op_type}", types), (str(version.id), types)
        is_the_same = names[0] in self._missing and names[1] in self._failed
        return is_the_same and not self.check.is_restricted(version.id)


_OperatorTypes = tuple[str, tuple[tuple[str, str], ...]]
"""Operator, such as `ai.onnx.Cast`, with or without a version, and its types by type variable."""


class _Candidates:
    """Conversions of a model, each of which serves the searches of several runtimes."""

    def __init__(self, model: ModelProto, registry: Registry) -> None:
        model, self.nodes = ordered(model, registry)
        self._opsets = {name: each for name, each in self.nodes.opsets.items() if registry.has_domain(name)}
        # If only functions use the default domain, the model may lack its import: take a function's.
        if default := imported_default_opset(model):
            self._opsets[DEFAULT_DOMAIN] = default
        self._model = model
        self._registry = registry
        self._converted: dict[Hashable, _Candidate] = {}
        self._facts: dict[int, SharedFacts] = {}
        """Facts about each model to convert, by `id` of the model."""
        self._refused = RefusedOpsets(self._opsets)
        self._versions: dict[Hashable, list[tuple[ModelNode, OperatorVersion | None]]] = {}
        self._failed: set[Hashable] = set()
        """Target opsets of the conversions that do not help a runtime."""
        self._remaining = 0

    def results(self, runtimes: Iterable[Runtime]) -> Iterator[RuntimeResult]:
        """Yield the result for each runtime, in the given order."""
        searches = self._searches(runtimes)
        source = self._opsets.get(DEFAULT_DOMAIN, 0)
        promising = {opset for each in searches for opset in each.promising}
        opsets = sorted(promising, key=lambda each: (abs(each - source), -each))  # on a tie, newer first
        # One opset at a time for all runtimes: keeping conversions to all opsets may need much memory.
        for position, opset in enumerate(opsets):
            self._remaining = len(opsets) - position
            self._try(opset, searches)
        yield from (each.result for each in searches)

    @gc_paused  # the facts about the model stay: collections would only traverse them
    def _searches(self, runtimes: Iterable[Runtime]) -> list[_Search]:
        return [self._search(each) for each in runtimes]

    def _search(self, runtime: Runtime) -> _Search:
        check = RuntimeCheck(runtime)
        support = check.check(self.nodes)
        newest = {name: check.newest_import(name) or opset for name, opset in self.nodes.opsets.items()}
        is_too_new = any(opset > newest[name] for name, opset in self.nodes.opsets.items())
        missing = {(without_version(each.operator), tuple(each.types.items())) for each in support.missing}
        # a conversion neither adds ranks to inputs nor removes attributes
        is_hopeless = check.needs_ranks(self.nodes) or check.has_unknown_attribute(self.nodes)
        is_searched = bool(missing) and (is_too_new or not is_hopeless)
        promising = dict(self._promising_opsets(check, missing)) if is_searched else {}
        return _Search(
            runtime, check, support, missing, promising, keeps_failure=is_too_new, is_hopeless=is_hopeless
        )

    @gc_paused
    def _try(self, opset: int, searches: Iterable[_Search]) -> None:
        """Convert to an opset of the default domain for each search that needs this conversion."""
        for each in searches:
            opsets = each.promising.get(opset)
            if opsets is None or self._fails_again(each, opsets):
                continue
            if each.reports_failure or opsets not in self._refused:
                each.add(self._attempt(each, opsets))
        # Before `gc_paused` ends, because objects that survive the next collection would be freed much later.
        self._converted.clear()

    def _fails_again(self, search: _Search, opsets: Mapping[str, int]) -> bool:
        """Return whether `search` knows that a node will lack a kernel after the conversion to `opsets`."""
        return search.has_failed and any(
            search.fails_again(node, version) for node, version in self._versions_at(opsets)
        )

    @cached_property
    def _distinct(self) -> ModelProto | None:
        return with_distinct_nodes(self._model, self._registry, self.nodes.scope)

    @cached_property
    def _has_merged_nodes(self) -> bool:
        return self._distinct is not None and lacks_nodes(self._distinct, self._model)

    def _attempt(self, search: _Search, opsets: Mapping[str, int]) -> ConversionAttempt:
        """Convert to `opsets` for `search`, first a copy without repeated nodes if that may save time.

        Making the copy takes less time than it saves only if many conversions do not help.
        """
        has_many_failures = len(self._failed) >= MIN_FAILURES and not search.reports_failure
        has_many_left = self._remaining >= MIN_REMAINING or "_distinct" in vars(self)
        is_converted = (id(self._model), tuple(opsets.items()), None) in self._converted
        if has_many_failures and has_many_left and not is_converted and self._distinct is not None:
            attempt = self._attempt_with(self._distinct, search, opsets)
            if not (attempt.succeeds or (self._has_merged_nodes and search.may_run_without_merging(attempt))):
                return attempt
        attempt = self._attempt_with(self._model, search, opsets)
        if not attempt.succeeds:
            self._failed.add(tuple(opsets.items()))
        return attempt

    def _attempt_with(
        self, model: ModelProto, search: _Search, opsets: Mapping[str, int]
    ) -> ConversionAttempt:
        newest_ir = search.runtime.ir_version
        ir_version, found = None, self._convert(model, opsets, None)
        if found.nodes is None:
            self._refused.add(opsets)
        elif newest_ir and found.nodes.ir_version > newest_ir:
            ir_version, found = newest_ir, self._convert(model, opsets, newest_ir)
        support = None if found.nodes is None else search.support_of(found.nodes)
        changed = {domain: opset for domain, opset in opsets.items() if opset != self._opsets[domain]}
        return ConversionAttempt(changed, ir_version, found.added_nodes, found.refusals, support)

    def _convert(self, model: ModelProto, opsets: Mapping[str, int], ir_version: int | None) -> _Candidate:
        key = id(model), tuple(opsets.items()), ir_version
        if key not in self._converted:
            options = Options.of(opsets, ir_version=ir_version, registry=self._registry)
            facts = self._facts.setdefault(id(model), SharedFacts(model.graph))
            result, plan = try_convert(model, replace(options, shared_facts=facts), owned=False)
            if result is None:
                nodes = None
            elif model is self._model and plan.keeps_graphs:
                nodes = self.nodes.with_ir_version(result.ir_version)
            else:
                nodes = ModelNodes(result, self._registry)
            causes = tuple(each.summary for each in group_refusals(plan.refusals))
            self._converted[key] = _Candidate(nodes, causes, Report.of(plan, result).added_nodes)
        return self._converted[key]

    def _promising_opsets(
        self, check: RuntimeCheck, missing: Set[_OperatorTypes]
    ) -> Iterator[tuple[int, Mapping[str, int]]]:
        """Yield targets at which a runtime may run all nodes: default-domain opset, and opsets by domain.

        If an opset of the model is too new for the runtime, the newest supported opsets are always included.
        """
        source, newest_opsets = self._opsets, check.runtime.opsets
        supported = {name: min(opset, newest_opsets.get(name, opset)) for name, opset in source.items()}
        # an opset that the registry lacks cannot be a target, so the import stays unchanged
        own = {
            domain: opset
            for domain, opset in supported.items()
            if domain == DEFAULT_DOMAIN or opset <= self._registry.newest_opset(domain)
        }
        newest = own.get(DEFAULT_DOMAIN, 0) and newest_opsets[DEFAULT_DOMAIN]
        newest = min(newest, self._registry.newest_opset())
        targets = [{**own, DEFAULT_DOMAIN: each} for each in range(1, newest + 1)] or [own]
        may_run: dict[Hashable, bool] = {}
        for opsets in filter(None, targets):  # there is no target for a model without a known domain
            if opsets == own != source or self._may_run_all(opsets, check, missing, may_run):
                yield opsets.get(DEFAULT_DOMAIN, 0), opsets

    def _may_run_all(
        self,
        opsets: Mapping[str, int],
        check: RuntimeCheck,
        missing: Set[_OperatorTypes],
        known: dict[Hashable, bool],
    ) -> bool:
        """Estimate whether a runtime may implement all nodes after the conversion to `opsets`.

        `known` has the answers for this runtime by node and operator version: few opsets have a new version.
        """
        for node, version in self._versions_at(opsets):
            key = id(node), version and version.id, opsets == self._opsets
            if key not in known:
                known[key] = self._may_run(node, version, check, missing, is_converted=not key[2])
            if not known[key]:
                return False
        return True

    def _versions_at(self, opsets: Mapping[str, int]) -> list[tuple[ModelNode, OperatorVersion | None]]:
        """Return a node of each group, and the version of its operator at `opsets`."""
        key = tuple(opsets.items())
        if key not in self._versions:
            nodes = [each.nodes[0] for each in self.nodes.groups.values()]
            self._versions[key] = [
                (each, self._registry.known_at(each.node.op_type, opsets.get(each.domain, 0), each.domain))
                for each in nodes
            ]
        return self._versions[key]

    def _may_run(
        self,
        node: ModelNode,
        version: OperatorVersion | None,
        check: RuntimeCheck,
        missing: Set[_OperatorTypes],
        *,
        is_converted: bool,
    ) -> bool:
        """Estimate, without converting, whether a runtime may implement the nodes that replace `node`.

        `version` is its operator version after the conversion; `is_converted` is false if no opset changes.
        """
        runtime = check.runtime
        known = {name: each for name, each in node.types if each}
        is_implemented = (f"{node.domain}.{node.node.op_type}", tuple(known.items())) not in missing
        if not is_converted:
            return is_implemented
        if node.operator is None:
            return is_implemented or version is not None  # an older opset may have the removed operator
        if version is None or (version.has_function and runtime.expands_functions):
            return True
        if version.deprecated and not node.operator.deprecated:
            return True  # the conversion replaces nodes of deprecated versions
        if version.id == node.operator.id:
            return is_implemented or check.depends_on_conversion(version.id)
        allowed = all(known.get(name, types[0]) in types for name, types in version.type_constraints.items())
        return not allowed or bool(runtime.falls_back) or runtime.find_kernel(version.id, known) is not None

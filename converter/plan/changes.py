"""Data types of a plan, and the changes of opset imports.

The types of restorations are here, because every conversion imports this module; the package `reversible`
imports pydantic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from opshift.checker.ir_features.contents import FIRST_IR_WITH_STANDALONE_INITIALIZERS, STANDALONE
from opshift.converter.options import Target
from opshift.converter.refusals import ConversionRefused, Refusal
from opshift.model.graphs import NodeRecord, node_label
from opshift.model.messages import ModelProto
from opshift.model.node import Tensor, Value
from opshift.model.operator_ids import DEFAULT_DOMAIN, OperatorId, canonical_domain
from opshift.model.shared_data import DeprecatedAlias, FrozenRecord
from opshift.model.tensors import Payload, payload_size
from opshift.registry.ir_versions import ir_versions
from opshift.registry.releases import Releases
from opshift.registry.steps import Allow
from opshift.rewriting.cached_rewrite import NodeRewrite
from opshift.rewriting.result import ComputedRewrite

if TYPE_CHECKING:
    from opshift.checker.ir_features.finders import ModelRewrite
    from opshift.converter.recognition.result import Recognition
    from opshift.converter.reversible.intact_groups import Group
    from opshift.converter.reversible.record import ConversionRecord, RecordEntry

METADATA_KEY: Final = "opshift.reversible"
"""Key of the conversion record in `ModelProto.metadata_props`."""


class NodeChange(NamedTuple):
    """Rewrite of a node; `path` names its graph or function in messages.

    Loops over all changes unpack the tuples, which takes a fraction of the time of reading named fields.
    """

    record: NodeRecord
    path: str
    name: str
    result: NodeRewrite

    @property
    def position(self) -> int:
        """Position of the node in its graph or function."""
        return self.record[0]

    @property
    def place(self) -> str:
        """Label of the node for messages, with its graph or function."""
        _, _, op_type, _, outputs = self.record
        return f"{self.path}, node {node_label(self.name, op_type, outputs)}"

    @property
    def operator(self) -> OperatorId:
        """Identity of the replaced operator version."""
        return self.result.operator.id


class Restoration(NamedTuple):
    """Original node to restore in place of the group of nodes that replaced it.

    `result` is the original, converted if its opset differs from the target. `operators` are labels of the
    nodes in the group, in order.
    """

    group: Group
    operators: tuple[str, ...]
    result: ComputedRewrite

    @property
    def is_whole(self) -> bool:
        """Whether the original node is restored unchanged."""
        return len(self.result.nodes) == 1 and self.result.nodes[0].node is self.result.original


@dataclass
class Restorations:
    """Restorations in one graph or function, and the new record of this graph or function.

    Attributes:
        restored: restorations, by the position of the node that the original overwrites.
        kept_groups: groups that stay in the model and in the record.
        removed: positions of nodes to be removed.
        dropped: names of constants and inner values to be removed.
        restored_positions: positions of nodes in restored groups, which need no other conversion.
        entries: entries of the new record, without digests.
        constants: names of constants that this or an earlier conversion added.
        holders: first output of the node that has a subgraph after the conversion, keyed by the position of
            the node that has the subgraph before the conversion and by the name of the attribute.
        unrecorded: places of nodes that are too large for the record, so that they are not restored.
    """

    restored: dict[int, Restoration] = field(default_factory=dict)
    kept_groups: list[Group] = field(default_factory=list)
    removed: set[int] = field(default_factory=set)
    dropped: set[str] = field(default_factory=set)
    restored_positions: set[int] = field(default_factory=set)
    entries: list[RecordEntry] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)
    holders: dict[tuple[int, str], str] = field(default_factory=dict)
    unrecorded: list[str] = field(default_factory=list)


@dataclass
class ContainerPlan:
    """Changes to one graph or function."""

    path: str
    node_count: int = 0
    changes: list[NodeChange] = field(default_factory=list)
    constants: Mapping[str, Tensor] = field(default_factory=dict)
    declarations: list[Value] = field(default_factory=list)
    """Computed values whose type and rank the converted graph declares."""
    cast_sources: Mapping[str, str] = field(default_factory=dict)
    """For each constant that a Cast has to produce, the name of the value to cast."""
    emits_graphs: bool = False
    """Whether new nodes contain new graphs."""
    has_constant_nodes: bool = False
    """Whether the model has Constant nodes: unread ones are removed, their replacements may lose names."""
    unread_inputs: set[str] = field(default_factory=set)
    """Inputs of changed nodes, here and in subgraphs, that the new nodes do not read."""
    payloads: Mapping[str, Payload] = field(default_factory=dict)
    """Packed elements of each constant."""
    new_imports: dict[str, int] = field(default_factory=dict)
    """Opset imports to add, for domains that only new nodes use."""
    subgraphs: list[tuple[int, str, int, ContainerPlan]] = field(default_factory=list)
    """Position of a node, name of its attribute, position in the attribute, and the plan of that subgraph."""

    calls: list[tuple[int, str]] = field(default_factory=list)
    """Positions of calls to redirect, each with the name of the function copy to call."""
    reversal: Restorations = field(default_factory=Restorations)
    """Restorations of nodes that earlier conversions replaced, and the new entries of the record."""

    @property
    def constant_sizes(self) -> dict[str, int]:
        """Size of each constant in bytes."""
        return {name: payload_size(each) for name, each in self.payloads.items()}

    @property
    def has_subgraphs(self) -> bool:
        """Whether nodes may contain graphs after the conversion."""
        return bool(self.subgraphs or self.emits_graphs or self.reversal.restored)

    def walk(self) -> list[ContainerPlan]:
        """Return this plan and the plans of all nested subgraphs."""
        found: list[ContainerPlan] = [self]
        for _, _, _, inner in self.subgraphs:
            found += inner.walk()
        return found

    def losses(self) -> list[str]:
        """Return a sentence about each node that a reversible conversion does not record."""
        reason = "the conversion back cannot restore it: its subgraphs are too large to record"
        return [f"{place}: {reason}" for each in self.walk() for place in each.reversal.unrecorded]

    @property
    def is_empty(self) -> bool:
        """Whether neither this container nor any nested subgraph changes."""
        is_same = not (self.changes or self.declarations or self.calls or self.reversal.dropped)
        return is_same and all(each[3].is_empty for each in self.subgraphs)


METADATA_FEATURES: Final = frozenset({"device_configurations", "metadata"})
"""Features of IR versions that can be removed without a change of operators and values."""


class FunctionCopy(FrozenRecord):
    """Copy of a function, specialized for some of its calls.

    `index` and `function` are the position and label of the original function; `name` is the name of the copy
    in the same domain.
    """

    index: int
    function: str
    name: str
    container: ContainerPlan


class Lowering(NamedTuple):
    """Rewrite that removes a feature of `ir_versions.yaml` from a model.

    `apply` replaces the feature. `drop` removes it without replacement, if the caller allows `allowance`.
    With `moves_nodes`, the `Contents` of the model have to be collected again after `apply`.
    """

    feature: str
    replacement: str
    apply: ModelRewrite | None
    allowance: Allow | None = None
    drop: ModelRewrite | None = None
    moves_nodes: bool = False


class IrChange(FrozenRecord):
    """A model's IR version before and after a conversion, and the rewrites that the change requires.

    `lowerings` are applied in order. Features in `dropped` are dropped, which the caller allows.
    `freed_initializers` stop being graph inputs, see `freed_initializers` in `converter.ir_version`.
    """

    before: int
    after: int
    lowerings: tuple[Lowering, ...] = ()
    dropped: frozenset[str] = frozenset()
    refusals: tuple[Refusal, ...] = ()
    freed_initializers: frozenset[str] = frozenset()

    @property
    def turns_initializers_into_inputs(self) -> bool:
        """Whether initializers of the main graph become inputs, including those that the conversion adds."""
        return self.after < self.before and self.before >= FIRST_IR_WITH_STANDALONE_INITIALIZERS > self.after

    @property
    def inlines_functions(self) -> bool:
        """Whether all functions are inlined, because the new IR version does not have functions."""
        return any(each.feature == "functions" for each in self.lowerings)

    @property
    def rewritten_features(self) -> set[str]:
        """Features of the model that the rewrites remove."""
        added = {STANDALONE} if self.turns_initializers_into_inputs else set()
        return added | {each.feature for each in self.lowerings}

    def steps(self) -> tuple[str, ...]:
        """Return one sentence about each rewrite."""
        return (*self._freed(), *map(self._describe, self.lowerings))

    def _freed(self) -> Iterator[str]:
        if count := len(self.freed_initializers):
            subject = "1 initializer is" if count == 1 else f"{count:,} initializers are"
            yield f"{subject} removed from the graph inputs, so callers cannot override them"

    def _describe(self, lowering: Lowering) -> str:
        if lowering.feature in self.dropped or not lowering.replacement:
            return loss_of(lowering.feature)
        return f"{ir_versions().meaning(lowering.feature)} become {lowering.replacement}"


def loss_of(feature: str) -> str:
    """Return the sentence about a feature of `ir_versions.yaml` that a conversion drops."""
    return f"the model loses {ir_versions().meaning(feature)}"


class OpsetChange(FrozenRecord):
    """Opset of one domain before and after the conversion."""

    domain: str
    source: int
    target: int


class ImportChanges(NamedTuple):
    """Changes of the opset imports: new opsets, removed domains, and a sentence about each repair."""

    opsets: tuple[OpsetChange, ...]
    removed: frozenset[str]
    sentences: tuple[str, ...]


def versions_text(opsets: Iterable[OpsetChange], ir_before: int, ir_after: int) -> str:
    """Return the changed versions, such as `ai.onnx 14 -> 17, IR version 7 -> 8`."""
    versions = [f"{each.domain} {each.source} -> {each.target}" for each in opsets]
    versions += [f"IR version {ir_before} -> {ir_after}"] if ir_before != ir_after else []
    return ", ".join(versions) or "no versions change"


class Plan(FrozenRecord):
    """Everything that a conversion does to a model, and everything that prevents it.

    `training` has a plan for the initialization and one for the algorithm of each `training_info`, in turn.
    `functions` has the order of the model. A plan with refusals is never applied. `allowances` has the kind
    and reason of each allowed inexact conversion.
    """

    opsets: tuple[OpsetChange, ...]
    ir: IrChange
    graph: ContainerPlan
    training: tuple[ContainerPlan, ...]
    functions: tuple[ContainerPlan, ...]
    targets: Mapping[str, int]
    refusals: tuple[Refusal, ...]
    allowances: tuple[tuple[str, str], ...] = ()
    copies: tuple[FunctionCopy, ...] = ()
    record: ConversionRecord | None = None
    """Record of this and earlier conversions to write into the model; `None` without such a record."""
    repairs: tuple[str, ...] = ()
    """Sentences about changes other than rewrites of nodes: see `Report.repairs`."""
    unreleased: tuple[str, ...] = ()
    """Sentences about targets that are not released yet."""
    notes: tuple[str, ...] = ()
    """Sentences about opsets that stay, and about releases used in place of releases that are not listed."""
    model_version: str | None = None
    """Version of the result, such as `1.3.0`, if it changes."""
    removed_imports: frozenset[str] = frozenset()
    """Domains of the removed opset imports, which no node needs."""
    requested: tuple[str, ...] = ()
    """Repairs at the request of the caller: shapes, element types, folding, and removed domains."""
    requested_removals: frozenset[str] = frozenset()
    """Domains of the opset imports that `fold` and `without` remove."""
    nodes_before: int | None = None
    """Number of nodes of the given model if the plan is for a changed copy, such as one with other types."""
    recognition: Recognition | None = None
    """Groups of nodes that one node replaced after the conversion, if the caller requests `recognize`."""

    concessions = DeprecatedAlias[tuple[tuple[str, str], ...]]("allowances")

    def __str__(self) -> str:
        changed = sum(len(each.changes) for each in self.containers())
        counts = f"{changed:,} nodes change, {len(self.refusals):,} are refused"
        return f"{versions_text(self.opsets, self.ir.before, self.ir.after)}; {counts}"

    def function_versions(self) -> list[tuple[int, ContainerPlan]]:
        """Return the functions of the result in order: the position of the original, and the plan.

        Copies follow their original, so a model that defines functions before their calls still does.
        """
        versions = [*enumerate(self.functions), *((each.index, each.container) for each in self.copies)]
        return sorted(versions, key=itemgetter(0))

    def containers(self) -> Iterator[ContainerPlan]:
        """Yield the plan of every graph, subgraph, function and function copy."""
        for top in (self.graph, *self.training, *self.functions, *(each.container for each in self.copies)):
            yield from top.walk()

    @property
    def is_empty(self) -> bool:
        """Whether the conversion changes nothing; always `False` for models with functions."""
        versions_stay = (
            not self.opsets and self.ir.before == self.ir.after and not self.ir.lowerings and not self.repairs
        )
        is_same = versions_stay and not self.functions and not (self.recognition and self.recognition.nodes)
        return is_same and all(each.is_empty for each in self.containers())

    @property
    def keeps_graphs(self) -> bool:
        """Whether only the IR version and metadata change, without functions, training, records or requests.

        Then all facts about nodes and values still hold.
        """
        has_requests = self.requested or self.removed_imports or self.record or self.recognition
        if self.opsets or self.repairs or self.functions or self.training or has_requests:
            return False
        first = FIRST_IR_WITH_STANDALONE_INITIALIZERS
        keeps_initializers = (self.ir.before >= first) == (self.ir.after >= first)
        is_metadata = self.ir.rewritten_features <= METADATA_FEATURES
        return keeps_initializers and is_metadata and all(each.is_empty for each in self.containers())

    @property
    def updates_subgraph_inputs(self) -> bool:
        """Whether initializers have to become inputs of new subgraphs, or stop being inputs of subgraphs.

        Otherwise, even an invalid model keeps the inputs of its subgraphs: the plan may be empty.
        """
        first = FIRST_IR_WITH_STANDALONE_INITIALIZERS
        if self.ir.before >= first or not self.graph.has_subgraphs:
            return False
        return self.ir.after >= first or any(each.emits_graphs for each in self.graph.walk())

    def require_possible(self) -> None:
        """Raise ConversionRefused if the plan contains refusals."""
        if self.refusals:
            raise ConversionRefused(self.refusals)


def plan_imports(
    model: ModelProto,
    imports: Mapping[str, int],
    target: Target,
    releases: Releases,
    operators: Collection[tuple[str, str]],
    plans: Collection[ContainerPlan],
    *,
    fold: bool = False,
) -> ImportChanges:
    """Return the changes of the opset imports of a model, given the operators and plans of all its nodes.

    Imports that the target does not know are removed unless a node needs them, because runtimes refuse to
    load a model with such an import. With `fold`, all imports that no node needs are removed.
    """
    changed = tuple(
        OpsetChange(domain, source, target.opsets[domain])
        for domain, source in imports.items()
        if target.opsets.get(domain, source) != source
    )
    removed: dict[str, int] = {}
    if fold or changed or target.ir_version is not None or target.documented is not None:
        # in all other cases, the opsets of the model are the target, and its imports stay
        final_opset = {**imports, **target.opsets}.get(DEFAULT_DOMAIN)
        others = {domain: opset for domain, opset in imports.items() if domain not in target.opsets}
        unknown = {
            domain: opset
            for domain, opset in others.items()
            if fold
            or domain in releases.internal_domains
            or not _is_known(domain, opset, final_opset, releases)
            or not (target.documented is None or domain in target.documented)
        }
        needed = set(_needed_domains(model, operators, plans)) if unknown else set()
        removed = {domain: opset for domain, opset in unknown.items() if domain not in needed}
    return ImportChanges(changed, frozenset(removed), (*_removals(removed, fold=fold), *_merges(model)))


def _is_known(domain: str, opset: int, default_opset: int | None, releases: Releases) -> bool:
    """Return whether an ONNX release with at most `default_opset` supports this opset.

    Return True without `default_opset`, and for a domain that no ONNX release has.
    """
    newest = releases.companion_of(domain, default_opset) if default_opset is not None else None
    return newest is None or opset <= newest


def _needed_domains(
    model: ModelProto, operators: Collection[tuple[str, str]], plans: Collection[ContainerPlan]
) -> Iterator[str]:
    yield DEFAULT_DOMAIN
    yield from (canonical_domain(domain) for domain, _ in operators)
    yield from (canonical_domain(function.domain) for function in model.functions)
    for plan in (inner for each in plans for inner in each.walk()):
        for change in plan.changes:
            yield from (operator.domain for operator in change.result.operators)


def _removals(removed: Mapping[str, int], *, fold: bool) -> Iterator[str]:
    """Yield a sentence for each removed opset import; `fold` removes all imports that no node needs."""
    reason = "no node needs it" if fold else "no node needs it, and the target lacks it"
    for domain, opset in removed.items():
        yield removed_import(domain, opset, reason)


def removed_import(domain: str, opset: int, reason: str = "no node needs it") -> str:
    """Return a sentence about the removal of an opset import."""
    return f"model: the import of {domain} {opset} was removed: {reason}"


def require_import(
    model: ModelProto, removed: Mapping[str, int], targets: Mapping[str, int], releases: Releases
) -> None:
    """Import the default domain in a model that lost all imports in `removed`: a model needs an import.

    The opset is the target's, else the removed one, else that of the first ONNX release with all `removed`.
    """
    if removed and not model.opset_import:
        opset = (
            targets.get(DEFAULT_DOMAIN) or removed.get(DEFAULT_DOMAIN) or releases.companion_opset(removed)
        )
        model.opset_import.add(version=opset)


def _merges(model: ModelProto) -> Iterator[str]:
    """Yield a sentence for each domain that the model imports more than once."""
    counts = Counter(canonical_domain(each.domain) for each in model.opset_import)
    for domain, count in counts.items():
        if count > 1:
            yield f"model: {count} equal imports of {domain} were merged"

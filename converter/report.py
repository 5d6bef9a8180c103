"""Report of a conversion: plain data about the changes, for people and programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, field, replace
from typing import Any

from opshift.checker.ir_features.contents import FIRST_IR_WITH_STANDALONE_INITIALIZERS
from opshift.converter.options import Options
from opshift.converter.plan.changes import ContainerPlan, NodeChange, OpsetChange, Plan, versions_text
from opshift.converter.recognition.result import NearMiss, Recognition, RecognizedNode
from opshift.converter.refusals import Refusal, RefusalGroup, group_refusals
from opshift.model.graphs import count_model_nodes
from opshift.model.messages import ModelProto
from opshift.model.shared_data import DeprecatedAlias, FrozenRecord
from opshift.rewriting.result import values_read

MAX_LINES = 10
"""Maximum number of changes, and of refusals, in the text of a report."""

MAX_OPERATORS = 5
"""Maximum number of operators in the text of a change."""

REMOVED_RECORD = "recognition removes the record of an earlier reversible conversion"

RESTORED_PREFIX = "restored to its state before an earlier conversion: "
"""Prefix of the first entry of `ChangedNode.steps` for a restored node."""


class ChangedNode(FrozenRecord):
    """Node that is replaced.

    Attributes:
        place: label of the node, with its graph or function.
        operator: its operator version, such as `ai.onnx.Clip:6`; several if one restored node replaces them.
        becomes: operator versions of the nodes that replace it, in order.
        steps: descriptions of the applied steps, a sentence each.
        nodes: number of nodes that replace it, including nodes in new subgraphs.
        constant_bytes: size of the constants that are added for it; a shared constant counts for the first
            node that reads it.
    """

    place: str
    operator: str
    becomes: tuple[str, ...]
    steps: tuple[str, ...]
    nodes: int = 1
    constant_bytes: int = 0


class ChangeGroup(FrozenRecord):
    """Replaced nodes with the same operator and the same replacement.

    Attributes:
        operator: operator version of the nodes.
        becomes: operator versions that replace one node, with their counts, the most frequent first.
        nodes: number of replaced nodes, and of the nodes that replace them.
        constant_bytes: size of the constants that are added for them.
        steps: descriptions of their steps, a sentence each.
    """

    operator: str
    becomes: tuple[tuple[str, int], ...]
    nodes: tuple[int, int]
    constant_bytes: int
    steps: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.nodes[0]:,} x {self.operator} -> {counted_names(self.becomes) or 'nothing'}"


def counted_names(counts: Iterable[tuple[str, int]]) -> str:
    """Return the first operators with their counts, such as `a, 2 x b and 3 others`."""
    names = [name if count == 1 else f"{count:,} x {name}" for name, count in counts]
    others = f" and {len(names) - MAX_OPERATORS} others" if len(names) > MAX_OPERATORS else ""
    return ", ".join(names[:MAX_OPERATORS]) + others


class SpecialisedFunction(FrozenRecord):
    """Function that could not be converted once for all calls, with the names of its copies.

    Some of the calls use the copies, which are in the same domain.
    """

    function: str
    copies: tuple[str, ...]


class Report(FrozenRecord):
    """Report of a plan or conversion.

    Attributes:
        opsets: domains with a changed opset.
        ir_version: IR version before and after.
        kept: number of unchanged nodes.
        changed: replaced nodes.
        constants: number of added constants.
        added_nodes: number of nodes after the conversion, minus those before it.
        added_bytes: size of the added constants.
        nodes: number of nodes before and after, in all graphs and functions. For a plan that is not applied,
            the number after ignores IR version rewrites, and added or removed Constant nodes.
        sizes: size of the model file before and after, in bytes; `None` after a refusal, and for a model in
            memory, which would have to be serialized.
        kept_operators: number of unchanged nodes by operator, the most frequent first. Only `opshift plan`
            counts them. In other reports, the field is empty and absent from JSON.
        model_version: new version of the model, such as `1.3.0`; `None` if it does not change.
        refusals: nodes and features that cannot be converted; empty after a conversion.
        allowances: kind and reason of each allowed inexact conversion.
        ir_steps: rewrites for the IR version, a sentence each.
        specialised: functions with copies for some of their calls.
        repairs: other changes, such as sorted nodes, removed imports and replaced types, and nodes that the
            conversion back cannot restore, a sentence each; includes `requested`.
        unreleased: targets that are not released yet, a sentence each.
        notes: opsets that stay because the target supports them, and the release that is used in place of
            an unlisted one, a sentence each.
        requested: the repairs at the caller's request: shapes, element types, folding, and removed domains.
        removed_imports: domains with opset imports that are removed, because no node needs them.
        recognized: nodes that replaced several others, such as a Gelu; empty unless recognition is requested.
        near_misses: nodes that match the pattern of an operator, but are kept.
        unsupported: target runtimes that do not implement all nodes of the result, a sentence each; empty in
            the report of a plan that is not applied.
    """

    opsets: tuple[OpsetChange, ...]
    ir_version: tuple[int, int]
    kept: int
    changed: tuple[ChangedNode, ...]
    constants: int
    refusals: tuple[Refusal, ...]
    allowances: tuple[tuple[str, str], ...] = ()
    ir_steps: tuple[str, ...] = ()
    specialised: tuple[SpecialisedFunction, ...] = ()
    repairs: tuple[str, ...] = ()
    added_nodes: int = 0
    added_bytes: int = 0
    model_version: str | None = None
    unreleased: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
    nodes: tuple[int, int] = (0, 0)
    sizes: tuple[int, int] | None = None
    kept_operators: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    recognized: tuple[RecognizedNode, ...] = ()
    near_misses: tuple[NearMiss, ...] = ()
    removed_imports: tuple[str, ...] = ()
    requested: tuple[str, ...] = ()

    concessions = DeprecatedAlias[tuple[tuple[str, str], ...]]("allowances")

    @classmethod
    def of(cls, plan: Plan, result: ModelProto | None = None) -> Report:
        """Return the report of a plan; `result` is the model after the plan was applied."""
        containers = list(plan.containers())
        changed = tuple(each for container in containers for each in _changed_nodes(container))
        counted = sum(container.node_count - len(container.reversal.removed) for container in containers)
        nodes = _node_counts(plan, changed, result)
        if plan.nodes_before is not None:
            # Do not count Casts that the requested element types add: the plan counts them as nodes.
            counted = min(counted, plan.nodes_before)
        # In a copy with other types, a replaced node may correspond to several removed nodes of the model.
        kept = max(counted - len(changed) - len(plan.refusals) + len(plan.ir.refusals), 0)
        recognition = plan.recognition or Recognition()
        removed = [REMOVED_RECORD] if recognition.removed_record else []
        return cls(
            plan.opsets,
            (plan.ir.before, plan.ir.after),
            kept,
            changed,
            sum(len(container.constants) for container in containers),
            plan.refusals,
            plan.allowances,
            plan.ir.steps(),
            tuple(_specialised_functions(plan)),
            (*plan.repairs, *removed),
            nodes[1] - nodes[0],
            sum(sum(container.constant_sizes.values()) for container in containers),
            plan.model_version,
            plan.unreleased,
            nodes=nodes,
            notes=plan.notes,
            recognized=recognition.nodes,
            near_misses=recognition.near_misses,
            removed_imports=tuple(sorted(plan.removed_imports | plan.requested_removals)),
            requested=plan.requested,
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Unreleased targets, repairs that were not requested, and runtimes that cannot run the result."""
        repairs = (each for each in self.repairs if each not in self.requested)
        return (*self.unreleased, *repairs, *self.unsupported)

    def groups(self) -> list[ChangeGroup]:
        """Return the changed nodes grouped by operator and replacement, the largest group first."""
        distinct = {each.becomes for each in self.changed}
        sorted_becomes = {becomes: tuple(Counter(becomes).most_common()) for becomes in distinct}
        members: dict[tuple[str, tuple[tuple[str, int], ...]], list[ChangedNode]] = {}
        for each in self.changed:
            members.setdefault((each.operator, sorted_becomes[each.becomes]), []).append(each)
        groups = [
            ChangeGroup(
                operator,
                becomes,
                (len(operator.split(", ")) * len(nodes), sum(each.nodes for each in nodes)),
                sum(each.constant_bytes for each in nodes),
                tuple(dict.fromkeys(step for each in nodes for step in each.steps)),
            )
            for (operator, becomes), nodes in members.items()
        ]
        return sorted(groups, key=lambda each: -each.nodes[0])

    def __str__(self) -> str:
        counts = [f"{self.kept:,} kept", f"{len(self.changed):,} changed"]
        counts += [f"{len(self.refusals):,} refused"] if self.refusals else []
        lines = [versions_text(self.opsets, *self.ir_version)]
        lines.append(f"nodes: {self.nodes[0]:,} -> {self.nodes[1]:,}; {', '.join(counts)}")
        lines += [f"note: {each}" for each in (*self.notes, *self.requested)]
        lines += [f"warning: {each}" for each in self.warnings]
        changes = [str(each) for each in self.groups()]
        changes += [f"recognized: {each}" for each in Recognition(self.recognized).sentences()]
        refusals = [f"refused: {each}" for each in self.refusal_groups()]
        for listed in (changes, refusals):
            lines += listed[:MAX_LINES]
            more = len(listed) - MAX_LINES
            lines += [f"... and {more:,} more"] if more > 0 else []
        return "\n".join(lines)

    def operators(self) -> Counter[tuple[str, tuple[str, ...]]]:
        """Count the changed nodes by operator version and replacement."""
        return Counter((each.operator, each.becomes) for each in self.changed)

    def refusal_groups(self) -> tuple[RefusalGroup, ...]:
        """Return the refusals, grouped by cause."""
        return group_refusals(self.refusals)

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        data = {**asdict(self), "refusal_groups": [each.as_dict() for each in self.refusal_groups()]}
        data["concessions"] = data["allowances"]  # deprecated alias
        if self.kept and not self.kept_operators:  # not counted, see `plan_with_cost`
            del data["kept_operators"]
        return data


def conversion_report(plan: Plan, result: ModelProto | None, options: Options) -> Report:
    """Return the report of a plan, with the target runtimes that cannot run its result; see `Report.of`."""
    report = Report.of(plan, result)
    if result is None or not options.target.runtimes:
        return report
    from opshift.runtimes.target_runtimes import unsupported_by  # imported here: few targets name runtimes

    unsupported = unsupported_by(options.target.runtimes, result, options.registry)
    return replace(report, unsupported=unsupported)


def _specialised_functions(plan: Plan) -> Iterator[SpecialisedFunction]:
    for function in dict.fromkeys(each.function for each in plan.copies):
        names = tuple(each.name for each in plan.copies if each.function == function)
        yield SpecialisedFunction(function, names)


def _node_counts(plan: Plan, changed: Iterable[ChangedNode], result: ModelProto | None) -> tuple[int, int]:
    originals = (plan.graph, *plan.training, *plan.functions)
    planned = sum(each.node_count for original in originals for each in original.walk())
    before = planned if plan.nodes_before is None else plan.nodes_before
    if plan.recognition is not None:
        return before, plan.recognition.node_counts[1]
    adds_constant_nodes = plan.functions or plan.ir.after < FIRST_IR_WITH_STANDALONE_INITIALIZERS
    removes_constant_nodes = plan.graph.has_constant_nodes and plan.graph.unread_inputs
    changes_constants = adds_constant_nodes or removes_constant_nodes
    if result is not None and (changes_constants or plan.ir.rewritten_features or plan.record):
        return before, count_model_nodes(result)
    after = sum(each.node_count - len(each.reversal.removed) for each in plan.containers())
    return before, after + sum(each.nodes - 1 for each in changed)


def _changed_nodes(container: ContainerPlan) -> Iterator[ChangedNode]:
    uncounted = dict(container.constant_sizes)
    for change in container.changes:
        read = values_read(change.result.nodes) if uncounted else ()
        yield changed_node(change, container, sum(uncounted.pop(name, 0) for name in read))


def changed_node(change: NodeChange, container: ContainerPlan, constant_bytes: int = 0) -> ChangedNode:
    """Return the description of a change for a report; `constant_bytes` is the size of its constants."""
    restored = container.reversal.restored.get(change.position)
    steps = tuple(
        f"{edge.source.id} -> {edge.opset}: {edge.change}".rstrip(": ") for edge in change.result.steps
    )
    return ChangedNode(
        change.place,
        ", ".join(restored.operators) if restored else str(change.operator),
        tuple(str(each.id) for each in change.result.operators),
        (f"{RESTORED_PREFIX}{change.operator}", *steps) if restored else steps,
        change.result.node_count,
        constant_bytes,
    )

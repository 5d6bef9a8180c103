"""Plan a conversion before the model changes: find the rewrite of each node, or all reasons to refuse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

from opshift.converter.ir_version.choose_version import freed_initializers, plan_ir_change
from opshift.converter.options import Options
from opshift.converter.plan.changes import (
    METADATA_KEY,
    ContainerPlan,
    FunctionCopy,
    NodeChange,
    Plan,
    plan_imports,
)
from opshift.converter.plan.node_analysis import NodeAnalysis
from opshift.converter.refusals import Refusal
from opshift.inference.facts import InferenceScope
from opshift.inference.scope import Scope
from opshift.inference.survey import ContainerSurvey, survey
from opshift.model.errors import CannotConvert, InvalidModel
from opshift.model.files import requiring_text
from opshift.model.graphs import (
    MAX_NODES,
    ContainerProto,
    NodeRecord,
    count_model_nodes,
    max_node_count,
    node_place,
    require_graph,
    too_many_nodes,
    training_graphs,
)
from opshift.model.indirect_reads import bound_names, names_in_training, values_named_in_attributes
from opshift.model.messages import ModelProto, NodeProto
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain, function_label, opset_imports
from opshift.registry.errors import ResolveError
from opshift.registry.steps import Allow
from opshift.rewriting.result import values_read
from opshift.rewriting.rewrite_cache import RewriteCache
from opshift.rewriting.routes import Router
from opshift.rewriting.workspace import Allowances, FreshNames, Workspace

if TYPE_CHECKING:
    from opshift.converter.functions.specialization import FunctionVersion, Specializations
    from opshift.converter.plan.refused_nodes import RefusedNodes
    from opshift.converter.reversible.history import History
    from opshift.inference.function_scope import FunctionTable

CONSTANT = frozenset({("", "Constant"), (DEFAULT_DOMAIN, "Constant")})
"""Domain and op_type of Constant nodes; models write the default domain as `""` or `"ai.onnx"`."""


MAX_ROUNDS = 4
"""Maximum number of planning rounds for a model with functions; each round adds function copies."""


class _ContainerPlans(NamedTuple):
    """Plans of the main graph, the training graphs, the functions and the function copies of a model."""

    graph: ContainerPlan
    training: tuple[ContainerPlan, ...]
    functions: tuple[ContainerPlan, ...]
    copies: tuple[FunctionCopy, ...]

    def all(self) -> Iterator[ContainerPlan]:
        yield from (self.graph, *self.training, *self.functions, *(each.container for each in self.copies))


class Planner:
    """Planner of one conversion; it does not modify the model."""

    def __init__(
        self,
        model: ModelProto,
        options: Options,
        specializations: Specializations | None = None,
        history: History | None = None,
        rounds: int = MAX_ROUNDS,
        functions: FunctionTable | None = None,
    ) -> None:
        self._model = model
        self._options = options
        self._registry = registry = options.registry
        self._names = FreshNames()
        self._named_values = values_named_in_attributes(model)
        self._variables = self._named_values.sources.union(bound_names(model))
        self._history = history
        self._allowances = Allowances(options.allow)
        self._functions = functions
        if model.functions and functions is None:
            from opshift.inference.function_scope import FunctionTable

            self._functions = FunctionTable(model, registry)
        self._specializations = specializations or {}
        self._rounds = rounds
        self._redirected_calls: dict[InferenceScope, list[tuple[NodeProto, str]]] = {}
        self._node_analysis = NodeAnalysis(model, options, self._functions)
        self._refused: RefusedNodes | None = None
        self._added = 0
        """Number of nodes that the rewrites planned so far add to the model."""

    def plan(self) -> Plan:
        """Return the plan, or raise InvalidModel if the structure of the model is invalid."""
        model = self._model
        imports = opset_imports(model.opset_import, model.ir_version)
        graph = self._survey(model.graph, imports, "graph")
        graph.scope.constant_inputs = freed_initializers(model, graph.scope, imports, self._options)
        training = [
            self._survey(each.graph, imports, each.path, graph.scope) for each in training_graphs(model)
        ]
        versions = self._function_versions()
        surveyed = (graph, *training, *(body.surveyed for body in versions))
        if self._options.shared_facts and self._functions is None and not self._history:
            self._options.shared_facts.move_to(graph.scope, self._names.created)
        self._node_analysis.finish(surveyed)
        if self._history:
            # Before any new name is chosen, because new names must differ from the names of restored values.
            self._history.reserve_names(self._names)
        graph_plan = self._container_plan(graph)
        training_plans = tuple(map(self._container_plan, training))
        plans = [self._container_plan(each.surveyed) for each in versions]
        if self._functions and self._refused and self._rounds > 1:
            from opshift.converter.functions.specialization import refine_specializations

            refined = refine_specializations(self._functions, self._refused.scopes, self._specializations)
            # Plan again with specialized copies of the refused functions, in at most `MAX_ROUNDS` rounds.
            if refined != self._specializations:
                functions, rounds = self._functions, self._rounds - 1
                functions.start_round()
                return Planner(model, self._options, refined, self._history, rounds, functions).plan()
        count = len(model.functions)
        copies = tuple(
            FunctionCopy(each.index, function_label(model.functions[each.index]), each.name, plan)
            for each, plan in zip(versions[count:], plans[count:], strict=True)
        )
        containers = _ContainerPlans(graph_plan, training_plans, tuple(plans[:count]), copies)
        return self._build_plan(imports, containers, graph.scope.constant_inputs)

    def _build_plan(self, imports: Mapping[str, int], found: _ContainerPlans, freed: frozenset[str]) -> Plan:
        operators, target = self._node_analysis.operators, self._options.target
        containers = list(found.all())
        changes = plan_imports(
            self._model,
            imports,
            target,
            self._registry.releases,
            operators,
            containers,
            fold=self._options.fold,
        )
        imports = {domain: opset for domain, opset in imports.items() if domain not in changes.removed}
        # restored nodes may read any initializer: keep all of them
        cleaned = None if self._history else found.graph
        ir = plan_ir_change(self._model, imports, self._options, self._allowances, operators, cleaned, freed)
        if self._history:
            ir = self._history.plan_ir_change(ir, imports, self._options)
        return Plan(
            changes.opsets,
            ir,
            found.graph,
            found.training,
            found.functions,
            target.opsets,
            (*(self._refused.refusals() if self._refused else ()), *ir.refusals),
            tuple(self._allowances.used),
            found.copies,
            self._history.updated_record(imports, ir) if self._history else None,
            (*changes.sentences, *(loss for each in containers for loss in each.losses())),
            tuple(self._registry.releases.unreleased(target.opsets)),
            notes=target.notes,
            removed_imports=changes.removed,
        )

    def _survey(
        self, container: ContainerProto, opsets: Mapping[str, int], path: str, parent: Scope | None = None
    ) -> ContainerSurvey:
        """Return the scope of a graph or function, and the analyses of its nodes."""
        statuses = self._node_analysis.statuses_at(opsets)
        scope_class = Scope if self._functions is None else self._functions.scope
        scope = scope_class(container, opsets, self._registry, statuses, parent)
        scope.evaluation.named_values = self._named_values
        if not scope.is_function:
            scope.variables = self._variables
            if parent is None:
                scope.read_in_training = names_in_training(self._model)
        self._names.sources.append(scope.used_names)
        keeps_records = scope.opset_of("") in self._node_analysis.router(opsets).fact_querying_opsets
        shared, classify = self._options.shared_facts, self._node_analysis.classify
        fields = shared.node_fields(container) if shared else None
        return survey(scope, path, classify, keeps_records=keeps_records, fields=fields)

    def _function_versions(self) -> list[FunctionVersion]:
        """Return the functions of the model, then their copies, which are specialized for some calls."""
        if self._functions is None:
            return []
        from opshift.converter.functions.specialization import build_function_versions

        versions = build_function_versions(
            self._functions, self._node_analysis.calls, self._survey_function, self._specializations
        )
        for body in versions[len(self._functions.protos) :]:
            body.name = self._functions.copy_name(body.index)
            for call in body.call_sites:
                self._redirected_calls.setdefault(call.scope, []).append((call.proto, body.name))
        return versions

    def _survey_function(self, index: int, caller_text: str) -> FunctionVersion:
        from opshift.converter.functions.specialization import FunctionVersion

        assert self._functions is not None
        function, self._node_analysis.calls = self._functions.protos[index], []
        path = f"function {function_label(function)}{caller_text}"
        surveyed = self._survey(function, self._functions.opsets(index), path)
        return FunctionVersion(index, surveyed, self._node_analysis.calls)

    def _container_plan(self, surveyed: ContainerSurvey) -> ContainerPlan:
        scope = surveyed.scope
        found = ContainerPlan(surveyed.path, len(scope.container.node))
        router = self._node_analysis.router(scope.opsets)
        if surveyed.candidates or self._history:
            self._plan_nodes(found, surveyed, router)
        # If steps inferred facts at this opset, the next survey at this opset keeps node records for them.
        if scope.has_node_records:
            router.fact_querying_opsets.add(scope.opset_of(""))
        found.calls = self._redirected_calls_of(scope)
        found.has_constant_nodes = not CONSTANT.isdisjoint(self._node_analysis.operators)
        found.subgraphs = [
            (index, attribute, position, self._container_plan(inner))
            for index, attribute, position, inner in surveyed.subgraphs
            if index not in found.reversal.restored_positions
        ]
        found.unread_inputs.update(*(each[3].unread_inputs for each in found.subgraphs))
        return found

    def _plan_nodes(self, found: ContainerPlan, surveyed: ContainerSurvey, router: Router) -> None:
        """Plan the changes of the nodes of a graph or function, and add them to its plan `found`."""
        scope = surveyed.scope
        workspace = Workspace(scope, self._names, self._allowances, router.default_opset)
        cache = RewriteCache(workspace, router)
        candidates = surveyed.candidates
        if self._history:
            self._history.restore(found, surveyed, workspace, router)
            # Restored nodes need no other rewrite.
            candidates = [each for each in candidates if each[0] not in found.reversal.restored_positions]
            restored = (each.result for each in found.reversal.restored.values())
            workspace.keep_constants(name for each in restored for name in values_read(each.nodes))
        skipped, only = self._options.skipped, self._options.only
        if skipped or only is not None:
            pairs = [(each, node_place(surveyed.path, scope.nodes[each[0]])) for each in candidates]
            # Test candidates for membership, without loops over the sets: they may be as large as the model.
            candidates = [
                each for each, place in pairs if place not in skipped and (only is None or place in only)
            ]
        for record in candidates:
            if change := self._node_change(record, surveyed, cache):
                found.changes.append(change)
        found.constants = workspace.kept_constants()
        found.declarations = workspace.shape_declarations() if workspace.shaped and not self._history else []
        found.cast_sources = workspace.cast_sources()
        found.payloads = workspace.payloads_of(found.constants)
        if self._history:
            self._history.add_entries(found, surveyed, router)
        found.emits_graphs = workspace.emits_graphs
        # Many changes share a rewrite: visiting each rewrite once takes less time than visiting all changes.
        rewrites = {id(each): each for _, _, _, result in found.changes for each in (result.operators,)}
        domains = {operator.domain for each in rewrites.values() for operator in each}
        found.new_imports = {
            domain: router.final_opset(domain) for domain in domains if domain not in scope.opsets
        }
        found.unread_inputs = cache.unread_inputs

    def _node_change(
        self, record: NodeRecord, surveyed: ContainerSurvey, cache: RewriteCache
    ) -> NodeChange | None:
        scope = surveyed.scope
        _, domain, op_type, _, _ = record
        proto = scope.nodes[record[0]]
        try:
            opset = scope.opsets.get(domain or DEFAULT_DOMAIN)
            if opset is None:
                self._registry.resolve(proto, scope.opsets)  # raises the error about a missing opset import
            assert opset is not None
            unresolved = self._node_analysis.unresolved
            if unresolved and (domain, op_type, opset) in unresolved:
                raise unresolved[domain, op_type, opset].with_traceback(None)
            result = cache.rewrite(record, proto, opset)
            if self._functions is not None:
                from opshift.converter.functions.attribute_references import restore_references

                result = restore_references(result, proto, scope)
            if result.is_unchanged:
                return None
            self._count_added(result.node_count - 1)
        except (CannotConvert, ResolveError) as error:
            self._refused_nodes.add(error, proto, surveyed)
            return None
        return NodeChange(record, surveyed.path, proto.name, result)

    def _count_added(self, count: int) -> None:
        """Add to the number of added nodes; raise CannotConvert if the model would have too many nodes."""
        if self._added + count > MAX_NODES and self._added + count > self._max_added:
            raise too_many_nodes(self._max_added)
        self._added += count

    @cached_property
    def _max_added(self) -> int:
        return max_node_count(self._model)

    @property
    def _refused_nodes(self) -> RefusedNodes:
        if self._refused is None:
            # imported here: most plans refuse no node
            from opshift.converter.plan.refused_nodes import RefusedNodes

            self._refused = RefusedNodes(self._options, self._names, self._node_analysis, self._functions)
        return self._refused

    def _redirected_calls_of(self, scope: Scope) -> list[tuple[int, str]]:
        calls = {id(proto): name for proto, name in self._redirected_calls.get(scope, ())}
        nodes = enumerate(scope.container.node) if calls else ()
        return [(position, calls[id(proto)]) for position, proto in nodes if id(proto) in calls]


@requiring_text
def plan_model(model: ModelProto, options: Options, *, owned: bool = False) -> tuple[ModelProto, Plan]:
    """Return the model to convert (or a changed copy) and its plan; `model` may change if it is `owned`."""
    require_graph(model)
    if options.target.limits:
        imports = opset_imports(model.opset_import, model.ir_version)
        options = replace(options, target=options.target.for_imports(imports))
    if model.training_info and "drop-training" in options.allow:
        # imported here: few models have training information
        from opshift.converter.ir_version.without_training import plan_without_training

        found = plan_without_training(model, options, partial(plan_model, owned=True))
        if found is not None:
            return found
    if options.shapes or options.fold or options.types:
        return _plan_prepared(model, options, owned=owned)
    return _replan(*_plan_in_order(model, options), options)


def _replan(model: ModelProto, plan: Plan, options: Options) -> tuple[ModelProto, Plan]:
    """Plan a refused model again without types that the target lacks; keep the plan with fewest refusals."""
    if not plan.refusals:
        return model, plan
    from opshift.converter.internal_types.replan import replan  # imported here: few plans have refusals

    return replan(model, plan, options, _plan)


def _plan_prepared(model: ModelProto, options: Options, *, owned: bool) -> tuple[ModelProto, Plan]:
    """Apply the changes that the caller requested (shapes, element types, folding), then plan.

    The changes are applied to a copy of the model unless it is `owned`.
    """
    nodes = count_model_nodes(model)
    domains = {canonical_domain(each.domain) for each in model.opset_import}
    model, changes, refusals, allowances = _prepare(model, options, owned=owned)
    ordered, plan = _plan_in_order(model, options)
    plan = replace(
        plan,
        repairs=(*changes, *plan.repairs),
        refusals=(*refusals, *plan.refusals),
        allowances=(*allowances, *plan.allowances),
    )
    if not refusals:
        ordered, plan = _replan(ordered, plan, options)
    kept = {canonical_domain(each.domain) for each in model.opset_import}
    return ordered, replace(
        plan,
        requested=(*changes, *plan.requested),
        requested_removals=plan.requested_removals | (domains - kept),
        nodes_before=nodes,
    )


class _Prepared(NamedTuple):
    """Model with the requested changes.

    Attributes:
        model: the model.
        changes: descriptions of the changes, a sentence each.
        refusals: reasons why some of the changes are impossible.
        allowances: the kind and reason of each inexact change.
    """

    model: ModelProto
    changes: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    allowances: tuple[tuple[Allow, str], ...] = ()


def _prepare(model: ModelProto, options: Options, *, owned: bool) -> _Prepared:
    """Return a model with the requested changes; `model` itself may be changed only if it is `owned`."""
    changes: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    allowances: tuple[tuple[Allow, str], ...] = ()
    if options.shapes:
        from opshift.converter.declared_shapes import with_declared_shapes

        shapes = dict(options.shapes)
        model, changes = with_declared_shapes(model, shapes, options.registry, owned=owned)
    if options.types:
        from opshift.converter.element_types.convert_model import convert_element_types

        model, converted, refusals, allowances = convert_element_types(model, options)
        owned |= not refusals
        changes += converted
    if options.fold:
        from opshift.converter.folding.fold import fold

        model, folded = fold(model, options, owned=owned or bool(changes))
        changes += folded
    return _Prepared(model, changes, refusals, allowances)


def _plan_in_order(model: ModelProto, options: Options) -> tuple[ModelProto, Plan]:
    """Plan the conversion of a model, or of a repaired copy if nodes read values that are not yet defined."""
    try:
        return model, _plan(model, options)
    except InvalidModel as error:
        from opshift.inference.repair import repaired_copy  # imported here: few models need repairs

        ordered, repairs = repaired_copy(model, error, options.registry)
    plan = _plan(ordered, options)
    return ordered, replace(plan, repairs=(*repairs, *plan.repairs))


def _plan(model: ModelProto, options: Options) -> Plan:
    """Return the plan of a model; after refusals, with `infer_shapes`, try the shapes that onnx infers."""
    plan = _plan_as_declared(model, options)
    if plan.refusals and options.infer_shapes:
        # imported here: few plans have refusals
        from opshift.converter.onnx_shapes import plan_with_onnx_shapes

        return plan_with_onnx_shapes(model, plan, options, _plan_as_declared)
    return plan


def _plan_as_declared(model: ModelProto, options: Options) -> Plan:
    """Plan a conversion without the shapes that onnx infers."""
    history = None
    if options.reversible or any(each.key == METADATA_KEY for each in model.metadata_props):
        # imported here: the module imports pydantic, which most conversions do not need
        from opshift.converter.reversible.history import History

        history = History(model, options.reversible)
    plan = Planner(model, options, history=history).plan()
    if options.without or plan.ir.inlines_functions:
        # imported here: few conversions remove functions or imports
        from opshift.converter.functions.removal import plan_removal

        return plan_removal(plan, model, options)
    return plan

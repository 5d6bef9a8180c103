"""Planner: compute the rewrite of every node, or all reasons for refusal, before the model is modified."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from functools import cache, partial
from typing import TYPE_CHECKING

from opshift.converter.ir_version.choose_version import plan_ir_change
from opshift.converter.options import Allowances, Options
from opshift.converter.plan.changes import ContainerPlan, FunctionCopy, NodeChange, OpsetChange, Plan
from opshift.converter.refusals import Refusal
from opshift.converter.rewrite.result import values_read
from opshift.converter.rewrite.workspace import FreshNames, Workspace
from opshift.converter.rewrite_cache.cache import RewriteCache
from opshift.converter.survey.node_analysis import NodeAnalysis
from opshift.converter.survey.survey import ContainerSurvey, survey
from opshift.inference.facts import InferenceScope
from opshift.inference.scope import Scope
from opshift.model.errors import CannotConvert, InvalidModel, NodeError, UnknownShape
from opshift.model.graphs import ContainerProto, NodeRecord, node_place, training_graphs
from opshift.model.messages import ModelProto, NodeProto
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain, function_label, opset_imports
from opshift.registry.errors import ResolveError

if TYPE_CHECKING:
    from opshift.converter.functions.specialization import FunctionVersion, Specializations
    from opshift.converter.reversible.history import History
    from opshift.converter.unknown_shapes import UnknownShapes


INTERMEDIATE = "an intermediate value"
"""Text for a value that a step created: users do not know its name."""


class Planner:
    """Planner of one conversion, which does not modify the model."""

    def __init__(
        self,
        model: ModelProto,
        options: Options,
        specializations: Specializations | None = None,
        history: History | None = None,
    ) -> None:
        self._model = model
        self._options = options
        self._registry = registry = options.registry
        self._target = options.target
        self._names = FreshNames()
        self._history = history
        self._allowances = Allowances(options.allow)
        self._functions = None
        if model.functions:
            from opshift.inference.function_scope import FunctionTable

            self._functions = FunctionTable(model, registry)
        self._specializations = specializations or {}
        self._redirected_calls: dict[InferenceScope, list[tuple[NodeProto, str]]] = {}
        self._node_analysis = NodeAnalysis(
            model, registry, self._target.opsets, self._functions, options.without
        )
        self._refusals: list[Refusal] = []
        self._refused_scopes: list[Scope] = []
        self._unknown_shapes: UnknownShapes | None = None
        self._has_constant_nodes = False

    def plan(self) -> Plan:
        """Return the plan, or raise InvalidModel if the structure of the model is invalid."""
        model = self._model
        if not model.HasField("graph"):
            reason = "this is not a model: it has no graph"
            raise InvalidModel(reason, remedy="check that it is the right file")
        imports = opset_imports(model.opset_import, model.ir_version)
        graph = self._survey(model.graph, imports, "graph")
        training = [
            self._survey(each.graph, imports, each.path, graph.scope) for each in training_graphs(model)
        ]
        versions = self._function_versions()
        surveyed = (graph, *training, *(body.surveyed for body in versions))
        self._node_analysis.finish(surveyed)
        possible_types = cache(partial(self._node_analysis.possible_types, surveyed))
        for each in surveyed:
            each.scope.evaluation.possible_types = possible_types
        if self._history:
            # Before the first fresh name, which must differ from the names that the history restores.
            self._history.reserve_names(self._names)
        plan = self._build_plan(imports, graph, training, versions)
        for each in surveyed:
            # It refers to the scope: without a reference cycle, all of them are freed at once.
            each.scope.evaluation.possible_types = None
        if self._functions and self._refused_scopes:
            from opshift.converter.functions.specialization import refine_specializations

            refined = refine_specializations(self._functions, self._refused_scopes, self._specializations)
            # Plan again with the refused functions specialized. This ends, because specializations only grow.
            if refined != self._specializations:
                return Planner(model, self._options, refined, self._history).plan()
        return plan

    def _build_plan(
        self,
        imports: Mapping[str, int],
        graph: ContainerSurvey,
        training: list[ContainerSurvey],
        versions: list[FunctionVersion],
    ) -> Plan:
        opsets = tuple(
            OpsetChange(domain, source, self._target.opsets[domain])
            for domain, source in imports.items()
            if self._target.opsets.get(domain, source) != source
        )
        operators = self._node_analysis.operators
        # once, because a model may have as many operators as functions
        self._has_constant_nodes = any(op_type == "Constant" for _, op_type in operators)
        ir = plan_ir_change(self._model, imports, self._options, self._allowances, operators)
        if self._history:
            ir = self._history.plan_ir_change(ir, imports, self._options)
        graph_plan = self._container_plan(graph)
        training_plans = tuple(map(self._container_plan, training))
        plans = [self._container_plan(each.surveyed) for each in versions]
        count = len(self._model.functions)
        copies = tuple(
            FunctionCopy(each.index, function_label(self._model.functions[each.index]), each.name, plan)
            for each, plan in zip(versions[count:], plans[count:], strict=True)
        )
        return Plan(
            opsets,
            ir,
            graph_plan,
            training_plans,
            tuple(plans[:count]),
            self._target.opsets,
            (*self._refusals, *ir.refusals),
            tuple(self._allowances.used),
            copies,
            self._history.updated_record(imports, ir) if self._history else None,
            unreleased=tuple(self._registry.releases.unreleased(self._target.opsets)),
        )

    def _survey(
        self, container: ContainerProto, opsets: Mapping[str, int], path: str, parent: Scope | None = None
    ) -> ContainerSurvey:
        statuses = self._node_analysis.statuses_at(opsets)
        scope_class = Scope if self._functions is None else self._functions.scope
        scope = scope_class(container, opsets, self._registry, statuses, parent)
        self._names.sources.append(scope.used_names)
        keeps_lines = scope.opset_of("") in self._node_analysis.router(opsets).fact_querying_opsets
        return survey(scope, path, self._node_analysis.classify, keeps_lines=keeps_lines)

    def _function_versions(self) -> list[FunctionVersion]:
        """Return the functions of the model, then the copies for some of their calls."""
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
        router = self._node_analysis.router(scope.opsets)
        found = ContainerPlan(surveyed.path, len(scope.container.node))
        workspace = Workspace(scope, self._names, self._allowances, router.default_opset)
        cache = RewriteCache(workspace, router)
        candidates = surveyed.candidates
        if self._history:
            self._history.restore(found, surveyed, workspace, router)
            # Restored nodes need no other rewrite.
            candidates = [each for each in candidates if each[0] not in found.reversal.restored_positions]
            restored = (each.result for each in found.reversal.restored.values())
            workspace.keep_constants(name for each in restored for name in values_read(each.nodes))
        if skipped := self._options.skipped:
            candidates = [
                each for each in candidates if node_place(surveyed.path, scope.nodes[each[0]]) not in skipped
            ]
        for line in candidates:
            change = self._node_change(line, surveyed, cache)
            if change is not None:
                found.changes.append(change)
        # Steps queried facts here, so the survey of the next model from this opset keeps its node records.
        if scope.has_node_records:
            router.fact_querying_opsets.add(scope.opset_of(""))
        found.constants = workspace.kept_constants()
        found.cast_sources = {
            name: self._names.fresh(f"{name}_double") for name in workspace.cast_constants()
        }
        found.constant_sizes = workspace.sizes_of(found.constants)
        if self._history:
            self._history.add_entries(found, surveyed, router)
        found.calls = self._redirected_calls_of(scope)
        found.emits_graphs, found.unread_inputs = workspace.emits_graphs, cache.unread_inputs
        found.has_constant_nodes = self._has_constant_nodes
        # Most changes share few rewrites: comparing these takes less time than visiting all operators.
        rewrites = {id(each): each for _, _, _, result in found.changes for each in (result.operators,)}
        domains = {operator.domain for each in rewrites.values() for operator in each}
        found.new_imports = {
            domain: router.final_opset(domain) for domain in domains if domain not in scope.opsets
        }
        found.subgraphs = [
            (index, attribute, position, self._container_plan(inner))
            for index, attribute, position, inner in surveyed.subgraphs
            if index not in found.reversal.restored_positions
        ]
        return found

    def _node_change(
        self, line: NodeRecord, surveyed: ContainerSurvey, cache: RewriteCache
    ) -> NodeChange | None:
        scope = surveyed.scope
        _, domain, op_type, _, _ = line
        proto = scope.nodes[line[0]]
        try:
            opset = scope.opsets.get(domain or DEFAULT_DOMAIN)
            if opset is None:
                self._registry.resolve(proto, scope.opsets)  # raises the error of a missing opset import
            assert opset is not None
            unresolved = self._node_analysis.unresolved
            if unresolved and (domain, op_type, opset) in unresolved:
                raise unresolved[domain, op_type, opset].with_traceback(None)
            result = cache.rewrite(line, proto, opset)
            if self._functions is not None:
                from opshift.converter.functions.attribute_references import restore_references

                result = restore_references(result, proto, scope)
            if result.is_unchanged:
                return None
        except (CannotConvert, ResolveError) as error:
            self._refuse(error, proto, surveyed)
            return None
        return NodeChange(line, surveyed.path, proto.name, result)

    def _refuse(self, error: NodeError, proto: NodeProto, surveyed: ContainerSurvey) -> None:
        created = self._names.created
        reason = _replace_names(error.reason, created, INTERMEDIATE)
        reason = re.sub(f"{INTERMEDIATE}(, {INTERMEDIATE})+", "intermediate values", reason)
        remedy, code = error.remedy, error.code
        if isinstance(error, UnknownShape):
            remedy = self._shape_remedy(error, surveyed.scope)
        elif _replace_names(remedy, created, "") != remedy:
            remedy = "declare the types of the inputs of the node: add a value_info for each"
        callers = self._functions.call_facts_of(surveyed.scope) if self._functions else None
        if callers is not None and not callers.calls:
            reason, remedy = f"{reason}; nothing calls the function", "remove the function"
            code = "function.uncalled"
        operator = self._operator_name(proto, surveyed.scope)
        domain = canonical_domain(proto.domain)
        target = self._target.opsets.get(domain) or surveyed.scope.opsets.get(domain, 0)
        subject = error.subject or _replace_names(reason, {*proto.input, *proto.output}, "'...'")
        place, nearest = node_place(surveyed.path, proto), error.nearest
        self._refusals.append(Refusal(place, operator, reason, remedy, code, subject, target, nearest))
        self._refused_scopes.append(surveyed.scope)

    def _shape_remedy(self, error: UnknownShape, scope: Scope) -> str:
        from opshift.converter.unknown_shapes import UnknownShapes, inference_advice  # seldom needed

        if self._unknown_shapes is None:
            advice = inference_advice(infers_shapes=self._options.infer_shapes)
            self._unknown_shapes = UnknownShapes(advice)
        return self._unknown_shapes.remedy(error, scope)

    def _redirected_calls_of(self, scope: Scope) -> list[tuple[int, str]]:
        calls = {id(proto): name for proto, name in self._redirected_calls.get(scope, ())}
        nodes = enumerate(scope.container.node) if calls else ()
        return [(position, calls[id(proto)]) for position, proto in nodes if id(proto) in calls]

    def _operator_name(self, proto: NodeProto, scope: Scope) -> str:
        """Return the identity of a node's operator version, or its domain and name if it is unknown."""
        domain = canonical_domain(proto.domain)
        opset = scope.opsets.get(domain, 0)
        unresolved = (proto.domain, proto.op_type, opset) in self._node_analysis.unresolved
        if unresolved or not self._registry.has(proto.op_type, opset, domain):
            return f"{domain}.{proto.op_type}"
        return str(self._registry.get_schema(proto.op_type, opset, domain).id)


def _replace_names(text: str, names: Set[str], replacement: str) -> str:
    """Replace the quoted names of values in a message."""
    return re.sub(r"'([^']*)'", lambda found: replacement if found[1] in names else found[0], text)

"""Decide: what every node becomes, or every reason why it cannot, before anything is touched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.converter.alike import Alike
from opshift.converter.changes import ContainerPlan, FunctionCopy, NodeChange, OpsetChange, Plan
from opshift.converter.concessions import Concessions
from opshift.converter.errors import InvalidModel, Refusal
from opshift.converter.ir_version import change_ir_version
from opshift.converter.lines import Line
from opshift.converter.names import Names
from opshift.converter.opsets import opset_imports
from opshift.converter.scope import Scope
from opshift.converter.standings import Standings
from opshift.converter.survey import Surveyed, label, survey
from opshift.converter.target import Target
from opshift.registry.catalogue import Registry
from opshift.registry.errors import ResolveError
from opshift.registry.names import DEFAULT_DOMAIN, canonical_domain

if TYPE_CHECKING:
    from opshift.converter.bodies import Body, Splits
    from opshift.converter.functions import Functions
    from opshift.converter.pattern import Result
    from opshift.converter.reversible.history import History


class Planner:
    """Plans one model."""

    def __init__(
        self,
        model: Any,
        target: Target,
        registry: Registry,
        allow: str | Iterable[str] = (),
        splits: Splits | None = None,
        history: History | None = None,
    ) -> None:
        self._model = model
        self._registry = registry
        self._target = target
        self._names = Names()
        self._history = history
        self._allow = allow if isinstance(allow, str) else tuple(allow)
        self._concessions = Concessions(self._allow)
        self._functions = _functions(model, registry) if model.functions else None
        self._splits = splits or {}
        self._redirected: dict[Scope, list[tuple[Any, str]]] = {}
        self._standings = Standings(model, registry, target.opsets, self._functions)
        self._refusals: list[Refusal] = []
        self._refused: list[Scope] = []

    def plan(self) -> Plan:
        """Look at every node once, then at those with a step to take.

        Raises:
            InvalidModel: the model has no meaning as it is.
        """
        model = self._model
        if not model.HasField("graph"):
            raise InvalidModel(
                "this is not a model: it has no graph", remedy="check that the file is the right one"
            )
        imports = opset_imports(model.opset_import, model.ir_version)
        graph = self._survey(model.graph, imports, "graph")
        training = [
            self._survey(getattr(info, part), imports, f"training_info[{index}].{part}", graph.scope)
            for index, info in enumerate(model.training_info)
            for part in ("initialization", "algorithm")
        ]
        bodies = self._bodies()
        self._standings.settle((graph, *training, *(body.surveyed for body in bodies)))
        if self._history:
            self._history.reserve(self._names)
        plan = self._plan(imports, graph, training, bodies)
        splits = self._more_splits() if self._refused else self._splits
        if splits == self._splits:
            return plan
        return Planner(model, self._target, self._registry, self._allow, splits, self._history).plan()

    def _plan(
        self,
        imports: Mapping[str, int],
        graph: Surveyed,
        training: list[Surveyed],
        bodies: list[Body],
    ) -> Plan:
        opsets = tuple(
            OpsetChange(domain, source, self._target.opsets[domain])
            for domain, source in imports.items()
            if self._target.opsets.get(domain, source) != source
        )
        ir = change_ir_version(
            self._model, imports, self._target, self._registry, self._concessions, self._standings.operators
        )
        if self._history:
            ir = self._history.ir(ir, imports, self._target, self._registry)
        tops = [self._container(each) for each in (graph, *training, *(body.surveyed for body in bodies))]
        first = 1 + len(training)
        functions, copies = (
            tops[first : first + len(self._model.functions)],
            tops[first + len(self._model.functions) :],
        )
        return Plan(
            opsets,
            ir,
            tops[0],
            tuple(tops[1:first]),
            tuple(functions),
            self._target.opsets,
            (*self._refusals, *ir.refusals),
            tuple(self._concessions.used),
            tuple(self._copy(*each) for each in zip(bodies[len(functions) :], copies, strict=True)),
            self._history.header(imports, ir) if self._history else None,
        )

    def _copy(self, body: Body, container: ContainerPlan) -> FunctionCopy:
        from opshift.converter.functions import title

        return FunctionCopy(body.index, title(self._model.functions[body.index]), body.name, container)

    def _survey(
        self, container: Any, opsets: Mapping[str, int], path: str, parent: Scope | None = None
    ) -> Surveyed:
        standings = self._standings.at(opsets)
        kind = Scope if self._functions is None else self._functions.scope
        scope = kind(container, opsets, self._registry, self._names, self._concessions, standings, parent)
        keeps_lines = scope.opset_of("") in self._standings.router(opsets).asking
        return survey(scope, path, self._standings.look, keeps_lines=keeps_lines)

    def _bodies(self) -> list[Body]:
        """The functions, and behind them the copies that some calls get."""
        if self._functions is None:
            return []
        from opshift.converter.bodies import arrange

        bodies = arrange(self._functions, self._standings.calls, self._survey_body, self._splits)
        for body in bodies[len(self._functions.protos) :]:
            body.name = self._functions.copy_name(body.index)
            for call in body.calls:
                self._redirected.setdefault(call.scope, []).append((call.proto, body.name))
        return bodies

    def _survey_body(self, index: int, called: str) -> Body:
        from opshift.converter.bodies import Body
        from opshift.converter.functions import title

        assert self._functions is not None
        function, self._standings.calls = self._functions.protos[index], []
        path = f"function {title(function)}{called}"
        surveyed = self._survey(function, self._functions.opsets(index), path)
        return Body(index, surveyed, self._standings.calls)

    def _more_splits(self) -> Splits:
        if self._functions is None:
            return self._splits
        from opshift.converter.bodies import more_splits

        return more_splits(self._functions, self._refused, self._splits)

    def _container(self, surveyed: Surveyed) -> ContainerPlan:
        scope = surveyed.scope
        router = self._standings.router(scope.opsets)
        found = ContainerPlan(surveyed.path, len(scope.container.node))
        alike = Alike(scope, router)
        if self._history:
            self._history.restore(found, surveyed, router)
        for line in found.reversal.unsettled(surveyed.todo):
            change = self._change(line, surveyed, alike)
            if change is not None:
                found.changes.append(change)
        if scope.has_lines:
            router.asking.add(scope.opset_of(""))
        found.constants = scope.new_constants
        if self._history:
            self._history.note(found, surveyed, router)
        found.calls = self._redirected_in(scope)
        domains = {operator.domain for change in found.changes for operator in change.result.operators}
        found.new_imports = {
            domain: router.final_opset(domain) for domain in domains if domain not in scope.opsets
        }
        found.subgraphs = [
            (index, attribute, position, self._container(inner))
            for index, attribute, position, inner in surveyed.subgraphs
            if index not in found.reversal.settled
        ]
        return found

    def _change(self, line: Line, surveyed: Surveyed, alike: Alike) -> NodeChange | None:
        scope = surveyed.scope
        _, domain, op_type, _, _ = line
        proto = scope.proto_of(line)
        try:
            opset = scope.opsets.get(domain or DEFAULT_DOMAIN)
            if opset is None:
                self._registry.resolve(proto, scope.opsets)
            assert opset is not None
            unresolved = self._standings.unresolved
            if unresolved and (domain, op_type, opset) in unresolved:
                raise unresolved[domain, op_type, opset].with_traceback(None)
            known = alike.known(line, proto, opset) if self._functions is None else None
            if known is not None:
                is_same = known.pattern.is_unchanged
                return None if is_same else NodeChange(line, surveyed.path, proto.name, known)
            node = scope.node_of(line)
            if self._functions is None:
                result = alike.learn(node, line, proto, opset)
            else:
                result = alike.rewrite(node, line, proto, opset)
                node, result = _settled(node, proto, result, scope)
            if result.is_same_as(node):
                return None
        except (CannotConvert, ResolveError) as error:
            self._refuse(error, proto, surveyed)
            return None
        return NodeChange(line, surveyed.path, proto.name, result, node)

    def _refuse(self, error: CannotConvert | ResolveError, proto: Any, surveyed: Surveyed) -> None:
        place = f"{surveyed.path}, node {label(proto.name, proto.op_type, proto.output)}"
        reason, remedy = error.reason, error.remedy
        callers = self._functions.callers_of(surveyed.scope) if self._functions else None
        if callers is not None and not callers.calls:
            reason, remedy = f"{reason}; nothing calls the function", "remove the function"
        self._refusals.append(Refusal(place, self._operator_name(proto, surveyed.scope), reason, remedy))
        self._refused.append(surveyed.scope)

    def _redirected_in(self, scope: Scope) -> list[tuple[int, str]]:
        calls = {id(proto): name for proto, name in self._redirected.get(scope, ())}
        nodes = enumerate(scope.container.node) if calls else ()
        return [(position, calls[id(proto)]) for position, proto in nodes if id(proto) in calls]

    def _operator_name(self, proto: Any, scope: Scope) -> str:
        """As much as can be told of what a node is."""
        domain = canonical_domain(proto.domain)
        opset = scope.opsets.get(domain, 0)
        unresolved = (proto.domain, proto.op_type, opset) in self._standings.unresolved
        if unresolved or not self._registry.has(proto.op_type, opset, domain):
            return f"{domain}.{proto.op_type}"
        return str(self._registry.get_schema(proto.op_type, opset, domain).id)


def _functions(model: Any, registry: Registry) -> Functions:
    from opshift.converter.functions import Functions

    return Functions(model, registry)


def _settled(node: Node, proto: Any, result: Result, scope: Scope) -> tuple[Node, Result]:
    from opshift.converter.call_scope import CallScope
    from opshift.converter.settled import settled

    return settled(node, proto, result, scope) if isinstance(scope, CallScope) else (node, result)

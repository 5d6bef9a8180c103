"""Check whether a runtime implements all nodes of a model."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping

from opshift.analysis.runtime_support.model_nodes import ModelNode, ModelNodes
from opshift.model.errors import CannotConvert
from opshift.model.files import ModelLike, model_of
from opshift.model.frozen_record import FrozenRecord
from opshift.model.onnx_ir.models import reading_onnx_ir
from opshift.model.operator_ids import OperatorId
from opshift.registry.registry import Registry, default_registry
from opshift.registry.runtimes.runtime import Runtime, Support


class UnsupportedNode(FrozenRecord):
    """Node that a runtime does not implement, or a property of the model that it does not accept."""

    place: str
    """Place in the model; `model` for its opsets and its IR version."""
    operator: str
    """Operator version, such as `ai.onnx.Add:14`; empty for a property of the model."""
    types: Mapping[str, str]
    """Known types by type variable or parameter."""
    reason: str
    remedy: str


@reading_onnx_ir
def check_support(
    model: ModelLike, runtime: Runtime, registry: Registry | None = None
) -> tuple[UnsupportedNode, ...]:
    """Return the nodes of a model that a runtime does not implement.

    A node is implemented if there is a kernel for its operator version and types and no restriction applies,
    or if the runtime replaces it by its function body and implements all nodes of it. Unknown types and
    undecided restrictions count as implemented.

    Raises:
        InvalidModel: the model cannot be read.
    """
    source, _ = model_of(model)
    return RuntimeCheck(runtime).check(ModelNodes(source, registry or default_registry()))


class RuntimeCheck:
    """Check of the nodes of models for one runtime; equal questions are answered once."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._supports: dict[Hashable, Support] = {}
        self._bodies: dict[ModelNodes, UnsupportedNode | None] = {}

    def check(self, model: ModelNodes) -> tuple[UnsupportedNode, ...]:
        """Return the nodes of a model that the runtime does not implement."""
        found = (self._problem(node, model) for node in model.nodes)
        return (*self._model_problems(model), *filter(None, found))

    def _model_problems(self, model: ModelNodes) -> Iterator[UnsupportedNode]:
        runtime = self._runtime
        for domain, opset in model.opsets.items():
            newest = runtime.opsets.get(domain, opset)
            if opset > newest:
                reason = f"{runtime.name} supports opset {newest} of {domain}, the model has {opset}"
                yield UnsupportedNode(
                    "model", "", {}, reason, f"convert the model to opset {newest} or older"
                )
        if model.ir_version > runtime.ir_version:
            reason = (
                f"{runtime.name} supports IR version {runtime.ir_version}, the model has {model.ir_version}"
            )
            yield UnsupportedNode("model", "", {}, reason, "convert the model to an older IR version")

    def _problem(self, node: ModelNode, model: ModelNodes) -> UnsupportedNode | None:
        runtime = self._runtime
        identity = self._identity(node)
        question = identity, node.types
        support = self._supports.get(question)
        types = {name: each for name, each in node.types if each}
        if support is None:
            support = self._supports[question] = runtime.kernel(identity, types)
        if support:
            return None
        reason = support.reason
        operator = node.operator
        is_known = identity.since_version <= runtime.opsets.get(node.domain, 0)
        if operator is not None and operator.has_function and runtime.expands_functions and is_known:
            body = model.body(node)
            missing = None if isinstance(body, CannotConvert) else self._body_problem(body)
            if missing is None:
                return None
            reason = f"{reason}; in its function body, {missing.reason}"
        return UnsupportedNode(node.place, str(identity), types, reason, support.remedy)

    def _body_problem(self, body: ModelNodes) -> UnsupportedNode | None:
        """Return the first node of a function body that the runtime does not implement."""
        if body not in self._bodies:
            self._bodies[body] = next(filter(None, (self._problem(node, body) for node in body.nodes)), None)
        return self._bodies[body]

    def _identity(self, node: ModelNode) -> OperatorId:
        """Return the operator version of a node; for an operator of the runtime, that of its kernel."""
        if node.operator is not None:
            return node.operator.id
        opset = node.scope.opset_of(node.node.domain)
        kernels = self._runtime.operators.get(f"{node.domain}.{node.node.op_type}", ())
        versions = (each.versions[0] for each in kernels if each.versions[0] <= opset)
        return OperatorId(node.domain, node.node.op_type, max(versions, default=opset))

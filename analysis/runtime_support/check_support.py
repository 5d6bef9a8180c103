"""Check whether a runtime implements all nodes of a model."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping

from opshift.analysis.runtime_support.conditions import refuses
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
        self._kernels: dict[Hashable, Support] = {}
        self._bodies: dict[ModelNodes, Support | None] = {}

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
        if runtime.ir_version is not None and model.ir_version > runtime.ir_version:
            reason = (
                f"{runtime.name} supports IR version {runtime.ir_version}, the model has {model.ir_version}"
            )
            yield UnsupportedNode("model", "", {}, reason, "convert the model to an older IR version")

    def _problem(self, node: ModelNode, model: ModelNodes) -> UnsupportedNode | None:
        missing = self._missing(node, model)
        if missing is None:
            return None
        identity, own = self._identity(node), self._kernel(node)
        is_own = own is missing or bool(own)
        reason = missing.reason if is_own else f"{own.reason}; in its function body, {missing.reason}"
        types = {name: each for name, each in node.types if each}
        return UnsupportedNode(node.place, str(identity), types, reason, own.remedy)

    def _missing(self, node: ModelNode, model: ModelNodes) -> Support | None:
        """Return why the runtime does not implement a node, or a node in its function body."""
        refusal = self._refusal(node)
        if refusal is not None:
            return refusal
        support = self._kernel(node)
        if support:
            return None
        version, runtime = node.operator, self._runtime
        is_known = version is not None and version.since_version <= runtime.opsets.get(node.domain, 0)
        if version is None or not (is_known and version.has_function and runtime.expands_functions):
            return support
        body = model.body(node)
        if isinstance(body, CannotConvert):
            return None
        if body not in self._bodies:
            answers = (self._missing(each, body) for each in body.nodes)
            self._bodies[body] = next((each for each in answers if each is not None), None)
        return self._bodies[body]

    def _kernel(self, node: ModelNode) -> Support:
        question = self._identity(node), node.types
        if question not in self._kernels:
            known = {name: each for name, each in node.types if each}
            self._kernels[question] = self._runtime.kernel(question[0], known)
        return self._kernels[question]

    def _refusal(self, node: ModelNode) -> Support | None:
        """Return the restriction that refuses a node, whether it has a kernel or a function body."""
        for each in self._runtime.restrictions_of(self._identity(node)):
            if refuses(each, node):
                return Support(None, f"{self._runtime.name} refuses the node: {each.reason}")
        return None

    def _identity(self, node: ModelNode) -> OperatorId:
        """Return the operator version of a node; for an operator of the runtime, that of its kernel."""
        if node.operator is not None:
            return node.operator.id
        opset = node.scope.opset_of(node.node.domain)
        kernels = self._runtime.operators.get(f"{node.domain}.{node.node.op_type}", ())
        versions = (each.versions[0] for each in kernels if each.versions[0] <= opset)
        return OperatorId(node.domain, node.node.op_type, max(versions, default=opset))

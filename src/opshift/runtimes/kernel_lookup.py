"""Look up the kernels of a runtime for nodes, also of operators that the registry does not define."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import cache
from typing import Final

from opshift.model.element_types import BY_NAME, element_bits, type_string
from opshift.model.operator_ids import DEFAULT_DOMAIN, OperatorId
from opshift.model.types import short_type
from opshift.registry.runtimes.restrictions import Restriction
from opshift.registry.runtimes.runtime import Kernel, Runtime, SchemaDifference, Support
from opshift.runtimes.conditions import OF_CONSTANTS, concerns, depends_on_node
from opshift.runtimes.constant_folding import ConstantFolding
from opshift.runtimes.model_nodes import ModelNode, ModelNodes
from opshift.runtimes.node_group import NodeGroup
from opshift.runtimes.schema_problems import schema_problem

FIRST_CAST_TO_NUMBERS: Final = 6
"""First opset in which the attribute `to` of Cast is a number; onnxruntime inserts only these Casts."""

ASSUMED_TYPES: Final = {"tensor(float)"}
"""Types that kernels are assumed to implement if their documentation names no types."""


class KernelLookup:
    """Kernels of one runtime, without those of its fallback; kernels for nodes are cached.

    Attributes:
        runtime: the runtime.
        schemas: differences of its schemas from the definitions, by operator; `None` if no schemas apply.

    The argument `fallback` is the lookup of the fallback.
    """

    def __init__(
        self,
        runtime: Runtime,
        schemas: Mapping[str, SchemaDifference] | None,
        fallback: KernelLookup | None = None,
    ) -> None:
        self.runtime = runtime
        self.schemas = schemas
        self._folding = ConstantFolding(self) if runtime.folds else None
        if fallback is not None:  # the optimizer of the fallback loads the model
            self._folding = fallback._folding
        self._narrowed = {each for each, other in runtime.computes_in.items() if _bits(other) < _bits(each)}
        self._kernels: dict[Hashable, Support] = {}

    def identity(self, node: ModelNode) -> OperatorId:
        """Return the operator version of a node; for an undefined operator, the version of its kernel."""
        if node.operator_id is not None:
            return node.operator_id
        return kernel_version(node, self.runtime, has_schemas=self.schemas is not None)

    def kernel(self, node: ModelNode) -> Support:
        """Return the kernel for a node, or the reason why it is missing."""
        identity, casts = self.identity(node), self._inserts_casts(node)
        question = identity, node.types, casts
        if question not in self._kernels:
            known = {name: each for name, each in node.types if each}
            self._kernels[question] = self.runtime.kernel(identity, known, inserts_casts=casts)
        return self._kernels[question]

    def concerns(self, restriction: Restriction, node: ModelNode, model: ModelNodes) -> bool | None:
        """Return whether a restriction concerns a node of a model; `None` if this is unknown."""
        return self.question(restriction, model)[1](node)

    def question(
        self, restriction: Restriction, model: ModelNodes
    ) -> tuple[Hashable, Callable[[ModelNode], bool | None]]:
        """Return the question whether a restriction concerns nodes of a model, as a key and a function.

        Runtimes that ask the same question share the answers, which are cached under the key.
        """
        if self._folding is None or not _reads_constants(restriction):
            return restriction, lambda node: concerns(restriction, node)
        unfolded = self._folding.unfolded(model)
        return (restriction, unfolded), lambda node: concerns(restriction, node.with_constants(unfolded))

    def has_kernel_without_notes(self, group: NodeGroup, model: ModelNodes) -> bool | None:
        """Return whether a kernel implements all nodes of a group; `None` if each node needs a full check.

        A full check is needed if restrictions, wrong results, schemas, unknown or undocumented types, casts,
        an undefined operator or a function body may matter. Few groups need it.
        """
        first, runtime = group.nodes[0], self.runtime
        operator, identity = first.operator, first.operator_id
        if operator is None or identity is None or not self._follow_schema(group):
            return None
        # nodes with such types may get casts, which depends on the opset of their graph or function
        if runtime.computes_in and not runtime.computes_in.keys().isdisjoint(group.element_types):
            return None
        kernel = runtime.find_kernel(identity, group.known_types, inserts_casts=False)
        if kernel is None and runtime.expands_functions and operator.has_function:
            return None
        errors = () if kernel is None else runtime.errors_of(identity)
        for each in (*runtime.restrictions_of(identity), *errors):
            if depends_on_node(each, first):
                is_unconcerned = group.answers(*self.question(each, model)) == [False]
            else:
                is_unconcerned = self.concerns(each, first, model) is False
            if not is_unconcerned:
                return None
        if kernel is None:
            return False
        has_unknown_type = not group.unknown_types.isdisjoint(kernel.types)
        return None if has_unknown_type or self.lacks_types(first, kernel) else True

    def _follow_schema(self, group: NodeGroup) -> bool:
        schemas = self.schemas
        return schemas is None or not any(schema_problem(kind[0], schemas) for kind in group.schema_kinds)

    def lacks_types(self, node: ModelNode, kernel: Kernel) -> bool:
        """Return whether the documentation of a kernel does not name its types, and they may matter."""
        if kernel.types or self.runtime.evidence.kind != "documentation":
            return False
        allowed = node.operator.type_constraints if node.operator else {}
        types = {each for name, each in node.types if len(allowed.get(name, ())) > 1}
        return not types <= ASSUMED_TYPES

    def uses_body(self, node: ModelNode) -> bool:
        """Return whether the runtime replaces the node by its function body if it has no kernel."""
        is_outdated = self.runtime.expands_outdated_bodies and node.has_fixed_body
        return self.runtime.expands_functions and (node.has_usable_body or is_outdated)

    def _inserts_casts(self, node: ModelNode) -> bool:
        """Return whether the runtime computes a node in an element type other than that of its values.

        The runtime casts inputs to a wider type if it has a kernel of Cast at the opset. If it may use the
        function body of the node, it casts the inputs of the nodes in the body instead. If `computes_in` maps
        a type to a narrower type, all nodes compute in the narrower type.
        """
        runtime = self.runtime
        if not runtime.computes_in:
            return False
        if not self._narrowed.isdisjoint(node.input_types | node.output_types):
            return True
        return (
            node.scope.opsets.get(DEFAULT_DOMAIN, FIRST_CAST_TO_NUMBERS) >= FIRST_CAST_TO_NUMBERS
            and not runtime.computes_in.keys().isdisjoint(node.input_types)
            and not self.uses_body(node)
            and self._has_cast(node)
        )

    def _has_cast(self, node: ModelNode) -> bool:
        """Return whether the runtime has a kernel of Cast at the opset of a node."""
        cast = node.scope.operator("Cast", DEFAULT_DOMAIN)
        kernels = self.runtime.operators.get(f"{DEFAULT_DOMAIN}.Cast", ())
        return cast is not None and any(each.implements(cast.since_version) for each in kernels)


@cache
def _reads_constants(restriction: Restriction) -> bool:
    """Return whether a restriction depends on which values a runtime computes before the first run."""
    conditions = filter(None, (restriction.when, restriction.unless))
    return any(not OF_CONSTANTS.isdisjoint(each.parts) for each in conditions)


def _bits(element_type: str) -> int:
    return element_bits(BY_NAME[element_type])


def kernel_version(node: ModelNode, runtime: Runtime, *, has_schemas: bool) -> OperatorId:
    """Return the operator version of the kernel that a runtime uses for an undefined operator.

    Args:
        node: the node.
        runtime: the runtime.
        has_schemas: whether the runtime looks up the operator in schemas, which end at its removal. Then the
            version of a removed operator is the opset that removes it: no kernel has this version.
    """
    op_type, opset = node.node.op_type, node.scope.opset_of(node.node.domain)
    definition = node.scope.registry.operator(op_type, node.domain) if has_schemas else None
    removals = [each.removal.removed_in for each in definition.versions if each.removal] if definition else []
    if removed := [each for each in removals if each <= opset]:
        return OperatorId(node.domain, op_type, max(removed))
    kernels = runtime.operators.get(f"{node.domain}.{op_type}", ())
    versions = (each.versions[0] for each in kernels if each.versions[0] <= opset)
    return OperatorId(node.domain, op_type, max(versions, default=opset))


def introduced_later(node: ModelNode) -> int | None:
    """Return the opset that introduced the operator if the opset import of a node is older, else `None`."""
    definition = node.scope.registry.operator(node.node.op_type, node.domain) if not node.operator else None
    opset = node.scope.opset_of(node.node.domain)
    return definition.introduced_after(opset) if definition and not definition.at(opset) else None


def type_problem(node: ModelNode, kernel: Kernel) -> str:
    """Return why the kernel of an undefined operator refuses a node's types; otherwise an empty text."""
    if node.operator is not None or len(kernel.types) != 1 or node.scope.registry.has_domain(node.domain):
        return ""
    (accepted,) = kernel.types.values()
    inputs = map(node.scope.element_type, filter(None, node.node.inputs))
    outputs = map(node.scope.declared_type, filter(None, node.node.outputs))
    for noun, types in (("inputs", inputs), ("outputs", outputs)):
        wrong = next((each for each in types if each and type_string(each) not in accepted), None)
        if wrong:
            return f"{noun} must be {' or '.join(map(short_type, accepted))}, not {wrong}"
    return ""

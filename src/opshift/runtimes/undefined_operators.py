"""Nodes with an operator that the registry does not define at the opset of the model."""

from __future__ import annotations

from opshift.model.element_types import type_string
from opshift.model.operator_ids import OperatorId
from opshift.model.types import short_type
from opshift.registry.runtimes.runtime import Kernel, Runtime
from opshift.runtimes.model_nodes import ModelNode


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

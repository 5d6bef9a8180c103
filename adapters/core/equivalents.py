"""Rewrite nodes for which a runtime has no kernel: change the operator, or compute in another element type.

An equivalent is an operator of a domain such as com.microsoft that can replace an ONNX operator. A bridge
casts the inputs of a node to an element type for which the runtime has a kernel, and the outputs back.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from opshift.adapters.core.rewriter import Attributes, Rewriter, StepFunction
from opshift.adapters.core.type_guard import emit_in_types, unsupported_types
from opshift.model.element_types import BY_NAME, type_string
from opshift.model.errors import CannotConvert
from opshift.model.node import Emitted, Node
from opshift.model.operator_ids import OperatorId
from opshift.model.rule_table import import_modules
from opshift.registry.registry import Registry


class Equivalent(NamedTuple):
    """Pair of operator versions: `replacement`, in a different domain, can replace nodes of `operator`."""

    operator: OperatorId
    replacement: OperatorId

    def __str__(self) -> str:
        return f"{self.replacement} for {self.operator}"


class EquivalentNode(NamedTuple):
    """Inputs, outputs and attributes of the node that replaces the original node."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Attributes


Parts = Callable[[Node, Rewriter], EquivalentNode]

_functions: dict[tuple[str, str], Parts] = {}


def equivalent(op_type: str, replacement: str) -> Callable[[Parts], Parts]:
    """Register a function that returns an `EquivalentNode` of operator `replacement` for an `op_type` node.

    If no function is registered, the replacement has the inputs, outputs and attributes of the original. The
    function raises `CannotConvert` if the replacement cannot compute the same result as the node.
    """

    def register(function: Parts) -> Parts:
        _functions[op_type, replacement] = function
        return function

    return register


@cache
def equivalents(registry: Registry, domain: str) -> Mapping[OperatorId, tuple[Equivalent, ...]]:
    """Return the equivalents that a domain's operators declare, by the operator version to replace."""
    found: dict[OperatorId, tuple[Equivalent, ...]] = {}
    for each in _declared_equivalents(registry, domain):
        found[each.operator] = (*found.get(each.operator, ()), each)
    return MappingProxyType(found)


def _declared_equivalents(registry: Registry, domain: str) -> Iterator[Equivalent]:
    for operator in registry.operators(domain):
        for version in operator.versions:
            for text in version.equivalents:
                yield Equivalent(OperatorId.parse(text), version.id)


def make_equivalent_step(pairs: Sequence[Equivalent]) -> StepFunction:
    """Return a step that replaces a node by the first suitable equivalent, or keeps the node."""
    import_modules("opshift.adapters.ops.com_microsoft")

    def replace(node: Node, out: Rewriter) -> None:
        for operator, (domain, op_type, opset) in pairs:
            parts = _functions.get((operator.op_type, op_type), _same_parts)
            try:
                inputs, outputs, attributes = parts(node, out)
            except CannotConvert:
                continue
            changes = {"inputs": inputs, "outputs": outputs, "attributes": attributes}
            new = node.with_(op_type=op_type, domain=domain, **changes)
            out.emitted.append(Emitted(new, opset, is_replacement=True))
            return
        out.replace(node)

    return replace


def _same_parts(node: Node, out: Rewriter) -> EquivalentNode:
    return EquivalentNode(node.inputs, node.outputs, node.attributes)


class TypeBridge(NamedTuple):
    """An element type and its replacement, for the values of one type variable of an operator version."""

    operator: OperatorId
    variable: str
    element_type: str
    replacement: str

    def __str__(self) -> str:
        return f"{self.operator}: {self.variable} in {self.replacement} instead of {self.element_type}"


Unwanted = str | TypeBridge | Equivalent
"""Unwanted part of a model: a domain or an operator such as `ai.onnx.Gelu` (`str`), an element type of an
operator version (`TypeBridge`), or an operator version that has an equivalent (`Equivalent`)."""


EXACT_IN_FLOAT = {"ConstantOfShape", "EyeLike", "RandomNormalLike", "RandomUniformLike", "Shape", "Size"}
"""Operators that read only shapes; ConstantOfShape is refused if float does not represent its `value`."""


def make_bridge_step(bridges: Sequence[TypeBridge]) -> StepFunction:
    """Return a step that casts inputs of a node to the replacement types of `bridges`, and outputs back.

    Nodes without the replaced types stay unchanged. A replacement of double by float requires `approximate`,
    except for operators in `EXACT_IN_FLOAT`.
    """
    replaced = {each.variable: frozenset({type_string(each.element_type)}) for each in bridges}
    replacements = {each.variable: each.replacement for each in bridges}

    def bridge(node: Node, out: Rewriter) -> None:
        found = unsupported_types(node, replaced, out)
        if not found:
            out.replace(node)
            return
        types = {variable: (element, replacements[variable]) for variable, (_, element) in found.items()}
        if node.op_type == "Cast" and node.attribute("to") == BY_NAME[types["T1"][1]].number:
            out.replace(node)  # the first of the two casts
            return
        if ("double", "float") in types.values() and out.source.name not in EXACT_IN_FLOAT:
            out.allow("approximate", f"{out.source.id} computes in float instead of double")
        emit_in_types(node, types, out)

    return bridge

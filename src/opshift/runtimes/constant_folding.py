"""Find constants that a runtime computes in each run, because its optimizer does not fold them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from opshift.inference.scope import Scope
from opshift.inference.symbols import is_symbol
from opshift.model.element_types import BY_NAME
from opshift.model.errors import CannotConvert
from opshift.model.node import Node
from opshift.model.operator_ids import OperatorId
from opshift.runtimes.constant_values import Unfolded
from opshift.runtimes.model_nodes import ModelNode, ModelNodes

if TYPE_CHECKING:
    from opshift.runtimes.kernel_lookup import KernelLookup

CONTROL_FLOW: Final = ("If", "Loop", "Scan", "SequenceMap")


class ConstantFolding:
    """Constants that an optimizer does not compute before the first run; they are cached for each model.

    See `Runtime.folds` for the conditions.
    """

    def __init__(self, lookup: KernelLookup) -> None:
        """`lookup` are the kernels with which the optimizer computes constants."""
        self._lookup = lookup
        self._runtime = lookup.runtime
        self._domains = frozenset(self._runtime.folds)
        self._unfolded = frozenset(self._runtime.unfolded)
        self._unsized = frozenset(self._runtime.unsized)
        self._kernels: dict[Hashable, bool | None] = {}
        self._found: WeakKeyDictionary[ModelNodes, Unfolded] = WeakKeyDictionary()

    def unfolded(self, model: ModelNodes) -> Unfolded:
        """Return the constants that the optimizer does not compute before the first run."""
        if model not in self._found:
            self._found[model] = frozenset(self._find(model))
        return self._found[model]

    def _find(self, model: ModelNodes) -> Iterator[tuple[Scope, str]]:
        for node in model.computed_constants:
            if not self._folds(node, model):
                yield from ((node.scope, each) for each in filter(None, node.node.outputs))
        folded: dict[Scope, bool] = {}  # many calls may share the scope of a large function
        for call, nodes in model.constant_calls:
            if call.body not in folded:
                is_folded = self._runtime.folds_functions and all(self._folds(each, model) for each in nodes)
                folded[call.body] = is_folded
            if not folded[call.body]:
                yield from ((call.scope, each) for each in call.outputs)

    def _folds(self, node: ModelNode, model: ModelNodes) -> bool:
        """Return whether the optimizer computes a node with constant inputs before the first run."""
        operator, identity = f"{node.domain}.{node.node.op_type}", self._lookup.identity(node)
        if operator in self._unfolded and not _is_quantized_later(node):
            return False
        is_unsized = self._unsized and not self._unsized.isdisjoint((operator, str(identity)))
        if is_unsized and not _has_declared_sizes(node):
            return False
        key = operator, identity, node.types, node.output_types
        if key not in self._kernels:
            self._kernels[key] = self._computes(node, operator, identity)
        has_kernel = self._kernels[key]
        if has_kernel or has_kernel is None:
            return bool(has_kernel)
        # without local functions, function bodies replace nodes after constant folding
        if not (self._runtime.folds_functions and model.has_functions and self._lookup.uses_body(node)):
            return False
        body = model.body(node)
        return not isinstance(body, CannotConvert) and all(self._folds(each, body) for each in body.nodes)

    def _computes(self, node: ModelNode, operator: str, identity: OperatorId) -> bool | None:
        """Return whether the optimizer has a kernel for a node; `None` if it never computes such nodes."""
        if self._domains.isdisjoint((node.domain, operator)) or not node.output_types <= BY_NAME.keys():
            return None
        known = {name: each for name, each in node.types if each}
        return self._runtime.find_kernel(identity, known, inserts_casts=False) is not None


def _has_declared_sizes(node: ModelNode) -> bool:
    """Return whether the model declares all sizes of the outputs of a node."""
    shapes = [node.scope.claimed_shape(each) for each in filter(None, node.node.outputs)]
    return all(shape is not None and None not in shape and not any(map(is_symbol, shape)) for shape in shapes)


def _is_quantized_later(node: ModelNode) -> bool:
    """Return whether a node is a DequantizeLinear, and QuantizeLinear follows after one other node.

    The other node must be deterministic, with one input and output, and without control flow. The optimizer
    computes these nodes together, but keeps other DequantizeLinear nodes for later fusions.
    """
    if node.node.op_type != "DequantizeLinear":
        return False
    scope = node.scope
    reader = _only_reader(node.node, scope)
    if reader is None or len(reader.inputs) != 1 or len(reader.outputs) != 1:
        return False
    operator = scope.operator(reader.op_type, reader.domain)
    is_deterministic = operator is not None and operator.determinism == "deterministic"
    if not is_deterministic or reader.op_type in CONTROL_FLOW:
        return False
    following = _only_reader(reader, scope)
    return following is not None and following.op_type == "QuantizeLinear"


def _only_reader(node: Node, scope: Scope) -> Node | None:
    """Return the node that reads the result of a node; `None` if the result has other uses, or none."""
    result = node.output(0)
    readers = scope.readers(result)
    if len(readers) != 1 or scope.is_captured(result) or result in scope.outputs:
        return None
    return scope.node_of(readers[0])

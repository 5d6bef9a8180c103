"""View of a graph or function for matching patterns: slots (inputs and attributes) and constants."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Set
from functools import cached_property
from itertools import chain
from typing import Any, Final

from opshift.converter.recognition.expansion import node_slots
from opshift.inference.constants import FLOAT_INTEGER_RANGES, INTEGER_RANGES
from opshift.inference.scope import Scope
from opshift.model.element_types import round_to_float32
from opshift.model.errors import CannotConvert
from opshift.model.graphs import NodeRecord, captured_names, graphs_of
from opshift.model.messages import TensorProto
from opshift.model.node import Tensor
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.model.tensors import read_tensor, write_tensor

MAX_DEPTH: Final = 6
"""Maximum number of nested `ROUNDED` operators of a number, such as 2 for `Sqrt(Div(1, 2))`."""

MAX_UNREAD_NODES: Final = 16
"""Maximum number of nodes with unused results that depend on one matched value."""

ROUNDED: Final[dict[str, Callable[..., float]]] = {
    "Sqrt": math.sqrt,
    "Pow": math.pow,
    "Reciprocal": lambda value: 1 / value,
    "Div": lambda one, other: one / other,
    "Mul": lambda one, other: one * other,
    "Cast": float,
}
"""Python functions of float operators that constant evaluation omits, because their results are rounded."""


class GraphView:
    """Nodes of one graph or function, with their slots and constants.

    Attributes:
        fixed: names of the values that must keep their producers.
        producer: returns the node that computes a value; `None` for inputs, initializers and captured values.
        children: views of the subgraphs of nodes, by position of the node.
        refuted: keys of candidates whose nodes differ from the expansion of the operator.
    """

    def __init__(self, scope: Scope, fixed: frozenset[str] = frozenset()) -> None:
        self.scope, self.fixed = scope, fixed
        self.producer: Callable[[str], NodeRecord | None] = scope.producing_records.get
        self.children: dict[int, list[GraphView]] = {}
        self._slots: dict[int, dict[str, Any] | None] = {}
        self._auxiliary: dict[str, bool] = {}
        self._constants: dict[str, Tensor | None] = {}
        self.refuted: set[Hashable] = set()

    def slots(self, record: NodeRecord) -> dict[str, Any] | None:
        """Return the slots of a node, see `node_slots`; `None` also for calls of local functions."""
        position = record[0]
        if position not in self._slots:
            is_call = self.scope.is_call(record)
            self._slots[position] = None if is_call else node_slots(self.scope.node_of(record), self.scope)
        return self._slots[position]

    def nested(self) -> Iterator[GraphView]:
        """Yield this view and the views of all nested subgraphs."""
        yield self
        for each in chain.from_iterable(self.children.values()):
            yield from each.nested()

    def capturing_nodes(self, name: str) -> Set[int]:
        """Return the positions of the nodes with a subgraph that reads a value."""
        return self._capturing_positions.get(name, frozenset())

    @cached_property
    def live_nodes(self) -> Set[int]:
        """Positions of the nodes on which values in `fixed`, or values that subgraphs read, depend."""
        found: set[int] = set()
        read = {*self.fixed, *self._capturing_positions}
        for position, _, _, inputs, outputs in reversed(self.scope.node_records):
            for name in outputs:
                if name in read and name:
                    found.add(position)
                    read.update(inputs)
                    break
        return found

    @cached_property
    def _capturing_positions(self) -> Mapping[str, Set[int]]:
        found: defaultdict[str, set[int]] = defaultdict(set)
        for position in self.children:
            graphs = graphs_of(self.scope.nodes[position])
            for each in chain.from_iterable(map(captured_names, graphs)):
                found[each].add(position)
        return found

    def unread_nodes(self, record: NodeRecord) -> list[NodeRecord]:
        """Return a node and its dependents; `[]` if one is live, or if there are over `MAX_UNREAD_NODES`."""
        if record[0] in self.live_nodes:
            return []
        found = [record]
        for each in found:
            for name in filter(None, each[4]):
                if len(found) > MAX_UNREAD_NODES:
                    return []
                found += [reader for reader in self.scope.readers(name) if reader not in found]
        return found

    def constant(self, name: str) -> Tensor | None:
        """Return the value if it is known to be the same in every run, else `None`."""
        if name not in self._constants:
            try:
                self._constants[name] = self.scope.constant(name)
            # the producer of the value is invalid
            except (CannotConvert, ValueError, TypeError, LookupError):
                self._constants[name] = None
        return self._constants[name]

    def default(self, record: NodeRecord, slot: str) -> Any:
        """Return the default of the attribute `slot`, a string as bytes; `None` if it has no default."""
        operator = self.scope.operator(record[2], record[1])
        attribute = operator.attributes.get(slot) if operator else None
        default = attribute.default if attribute else None
        return default.encode() if isinstance(default, str) else default

    def is_auxiliary(self, name: str) -> bool:
        """Return whether a value is an integer or bool, as sizes are, or a Constant, or a known `number`."""
        found = self._auxiliary.get(name)
        if found is None:
            record = self.producer(name)
            if record is not None and record[2] == "Constant" and record[1] in ("", DEFAULT_DOMAIN):
                return True  # a shortcut for most values: their types and elements do not matter
            is_integer = self.scope.element_type(name) in (*INTEGER_RANGES, "bool")
            found = self._auxiliary[name] = is_integer or self.number(name) is not None
        return found

    def number(self, name: str, depth: int = MAX_DEPTH) -> Tensor | None:
        """Return a constant, or the rounded result of `ROUNDED` operators on numbers, such as `Sqrt(2)`.

        Return `None` for other values.
        """
        found = self.constant(name)
        record = None if found is not None or not depth else self.producer(name)
        if record is None or record[2] not in ROUNDED or canonical_domain(record[1]) != DEFAULT_DOMAIN:
            return found
        operands = [each for name in record[3] if (each := self.number(name, depth - 1)) is not None]
        element_type = self.scope.element_type(name)
        is_complete = len(operands) == len(record[3]) and all(len(each.values) == 1 for each in operands)
        if element_type not in FLOAT_INTEGER_RANGES or not is_complete:
            return None
        try:
            value = ROUNDED[record[2]](*(float(each.scalar) for each in operands))
        except (ArithmeticError, ValueError, TypeError):
            return None
        rounded = round_to(value, element_type)
        dims = max((each.dims for each in operands), key=len)
        return None if rounded is None else Tensor(element_type, dims, (rounded,))


def round_to(value: float, element_type: str) -> float | None:
    """Return a number rounded to a floating-point type; `None` if the type cannot store it."""
    if element_type in ("float", "double"):
        return value if element_type == "double" else round_to_float32(value)
    proto = TensorProto()
    try:
        write_tensor(proto, Tensor(element_type, (), (value,)))
    except CannotConvert:
        return None
    found = read_tensor(proto)
    return None if found is None else float(found.scalar)

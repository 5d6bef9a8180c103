"""Scopes of models with local functions: facts pass from calls into functions, and back to the calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from opshift.adapters.node import Node, Tensor
from opshift.converter.following import Kind, Learned
from opshift.converter.scope import Producer, Scope
from opshift.converter.types import Shape

if TYPE_CHECKING:
    from opshift.converter.callers import Callers
    from opshift.converter.functions import Functions
    from opshift.converter.lines import Line
    from opshift.registry.models import OperatorVersion


class CallScope(Scope):
    """Scope of a model with local functions: a graph whose nodes may call them, or a function itself.

    Attributes:
        functions: function table of the model.
        call_facts: facts about the calls that a function is converted for; `None` for graphs.
    """

    functions: Functions
    callers: Callers | None = None

    def child(self, graph: Any) -> Scope:
        """Return the scope of a subgraph of a node."""
        found = super().child(graph)
        assert isinstance(found, CallScope)
        found.functions = self.functions
        return found

    def stated_type(self, name: str) -> str | None:
        """Return the declared element type of a value, or the type that calls pass to a function input."""
        found = super().stated_type(name)
        return self.callers.element_type(name) if found is None and self.callers else found

    def stated_shape(self, name: str) -> Shape | None:
        """Return the declared shape of a value, or the shape that the calls pass to a function input."""
        found = super().stated_shape(name)
        return self.callers.shape(name) if found is None and self.callers else found

    def stated_rank(self, name: str) -> int | None:
        """Return the declared rank of a value, or the rank that the calls pass to a function input."""
        stated = super().stated_shape(name)
        if stated is None and self.callers:
            return self.callers.rank(name)
        return None if stated is None else len(stated)

    def operator(self, op_type: str, domain: str) -> OperatorVersion | None:
        """Return the operator version under the opset imports; `None` if a function has its name."""
        # A function shadows the operator of the same name (IR specification, "Functions").
        return None if self.functions.has_name(op_type, domain) else super().operator(op_type, domain)

    def learned(self, kind: Kind[Any]) -> Learned:
        """Return a new inference cache."""
        # The shared cache is keyed by op_type, which may be the name of a function in this model.
        return Learned()

    def seen(self, node: Node) -> Node:
        """Return a node with the attributes and inputs on which all calls of its function agree."""
        callers = self.functions.callers_of(self)
        return node if callers is None else callers.view(node, self)

    @property
    def has_plain_nodes(self) -> bool:
        """Whether nodes depend on their NodeProto alone: this is not a function or a subgraph of one."""
        return self.functions.callers_of(self) is None

    def is_call(self, line: Line) -> bool:
        """Return whether a node calls a function."""
        return self.functions.find(self.proto_of(line)) is not None

    def through_call(self, line: Line, fact: Callable[[Scope, str], Any]) -> list[Any] | None:
        """Return one fact per output of a function call; `None` if the node is not a call."""
        return self.functions.results(self.proto_of(line), self, fact)

    def _find_producer(self, name: str) -> Producer | None:
        found_record = self._producing_records.get(name)
        constant = None
        if self.callers is not None and self.is_overridable(name):
            constant = self.callers.constant(name)
        elif found_record is not None and self.is_call(found_record[0]):
            constants = self.functions.results(self.proto_of(found_record[0]), self, Scope.constant)
            constant = constants[found_record[1]] if constants else None
        else:
            return super()._find_producer(name)
        return None if constant is None else self._constant_producer(name, constant)

    def _constant_producer(self, name: str, constant: Tensor) -> Producer:
        """Return a producer for a value that is constant in every call, as if a Constant produced it."""
        node = Node("Constant", (), (name,), {"value": constant})
        return Producer(node, 0, self.registry.at("Constant", self.opset_of(""), ""))

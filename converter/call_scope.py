"""The scopes of a model that has local functions: facts pass from calls into functions, and back out."""

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
    """A scope whose nodes may call functions of the model, or that is such a function itself.

    Attributes:
        functions: those of the model.
        callers: of a function, the calls that it is converted for.
    """

    functions: Functions
    callers: Callers | None = None

    def child(self, graph: Any) -> Scope:
        """The scope of a graph that an attribute of a node holds."""
        found = super().child(graph)
        assert isinstance(found, CallScope)
        found.functions = self.functions
        return found

    def stated_type(self, name: str) -> str | None:
        """The element type that the model states; of a function's input, what its calls tell."""
        found = super().stated_type(name)
        return self.callers.element_type(name) if found is None and self.callers else found

    def stated_shape(self, name: str) -> Shape | None:
        """The shape that the model states; of a function's input, what its calls tell."""
        found = super().stated_shape(name)
        return self.callers.shape(name) if found is None and self.callers else found

    def stated_rank(self, name: str) -> int | None:
        """The number of dimensions that the model states; of a function's input, what its calls tell."""
        stated = super().stated_shape(name)
        if stated is None and self.callers:
            return self.callers.rank(name)
        return None if stated is None else len(stated)

    def operator(self, op_type: str, domain: str) -> OperatorVersion | None:
        """What an operator is under the opset imports here; none where a function has its name."""
        return None if self.functions.has_name(op_type, domain) else super().operator(op_type, domain)

    def learned(self, kind: Kind[Any]) -> Learned:
        """Where to remember what follows of nodes: functions may have the names of operators."""
        return Learned()

    def seen(self, node: Node) -> Node:
        """A node with what all calls of the function that it is in give it."""
        callers = self.functions.callers_of(self)
        return node if callers is None else callers.view(node, self)

    @property
    def has_plain_nodes(self) -> bool:
        """Whether this is no function, nor a graph in one."""
        return self.functions.callers_of(self) is None

    def is_call(self, line: Line) -> bool:
        """Whether a node calls a function."""
        return self.functions.find(self.proto_of(line)) is not None

    def through_call(self, line: Line, fact: Callable[[Scope, str], Any]) -> list[Any] | None:
        """A fact about each output of a node that calls a function; `None` if it calls none."""
        return self.functions.results(self.proto_of(line), self, fact)

    def _find_producer(self, name: str) -> Producer | None:
        made = self._made_by.get(name)
        constant = None
        if self.callers is not None and self.is_overridable(name):
            constant = self.callers.constant(name)
        elif made is not None and self.is_call(made[0]):
            constants = self.functions.results(self.proto_of(made[0]), self, Scope.constant)
            constant = constants[made[1]] if constants else None
        else:
            return super()._find_producer(name)
        return None if constant is None else self._constant_producer(name, constant)

    def _constant_producer(self, name: str, constant: Tensor) -> Producer:
        """The value as if a Constant made it here."""
        node = Node("Constant", (), (name,), {"value": constant})
        return Producer(node, 0, self.registry.at("Constant", self.opset_of(""), ""))

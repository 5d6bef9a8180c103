"""The local functions of a model: which of them a node calls, and what a call makes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any

from opshift.adapters.node import Node
from opshift.converter.call_scope import CallScope
from opshift.converter.callers import Call, Callers
from opshift.converter.concessions import Concessions
from opshift.converter.errors import InvalidModel
from opshift.converter.names import Names
from opshift.converter.opsets import opset_imports
from opshift.converter.scope import Scope
from opshift.converter.survey import label
from opshift.registry.catalogue import LocalFunction, Registry
from opshift.registry.names import canonical_domain

DEEPEST = 40
"""How many calls within calls are followed for a fact; beyond that it is not known."""


class Functions:
    """The local functions of one model.

    A function is known by its domain, its name and its overload (IR version 10); it comes before an
    operator of the same name.

    Attributes:
        protos: the functions, in the order of the model.
        others: operators that nobody defined, by domain.

    Raises:
        InvalidModel: two functions are called the same.
    """

    def __init__(self, model: Any, registry: Registry) -> None:
        self.protos = tuple(model.functions)
        self._model = model
        self._registry = registry
        self._index: dict[LocalFunction, int] = {}
        self._bodies: dict[Hashable, Scope] = {}
        self._bodies_of_calls: dict[Hashable, Scope] = {}
        self._depth = 0
        self.others: dict[str, set[str]] = {}
        for index, each in enumerate(self.protos):
            if self._index.setdefault(identity(each), index) != index:
                raise InvalidModel(f"function {title(each)} is there twice", remedy="give one another name")
        self._names = frozenset((each.domain, each.name) for each in self._index)

    def find(self, node: Any) -> int | None:
        """The position of the function that a NodeProto or Node calls, `None` if it calls none."""
        domain = canonical_domain(node.domain)
        if (domain, node.op_type) not in self._names:
            return None
        return self._index.get(LocalFunction(domain, node.op_type, getattr(node, "overload", "")))

    def has(self, identity: LocalFunction) -> bool:
        """Whether there is a function of this domain, name and overload."""
        return identity in self._index

    def has_name(self, op_type: str, domain: str) -> bool:
        """Whether some function, of any overload, is called so."""
        return (canonical_domain(domain), op_type) in self._names

    def call(self, proto: Any, scope: Scope) -> tuple[int, Call] | None:
        """The call that a node is, and of which function; `None` if it is an operator.

        Raises:
            InvalidModel: no function has its overload, or it gives or takes more than the function does.
        """
        index = self.find(proto)
        place = f"node {label(proto.name, proto.op_type, proto.output)}"
        if index is None:
            if self._registry.at(proto.op_type, scope.opset_of(proto.domain), proto.domain) is None:
                self._raise_unknown(proto, place)
            return None
        function = self.protos[index]
        for kind in ("input", "output"):
            given, taken = getattr(proto, kind), getattr(function, kind)
            if any(given[len(taken) :]):
                reason = f"it has {len(given)} {kind}s; function {title(function)} has {len(taken)}"
                raise InvalidModel(reason, place=place, remedy="correct the call")
        return index, Call(Node.of(proto), proto, scope)

    def _raise_unknown(self, proto: Any, place: str) -> None:
        named = (canonical_domain(proto.domain), proto.op_type)
        there = ", ".join(repr(each.overload) for each in self._index if each[:2] == named)
        reason = f"no function {'.'.join(named)} has overload {proto.overload!r}"
        raise InvalidModel(reason, place=place, remedy=f"there are {there}")

    def copy_name(self, index: int) -> str:
        """A name for a copy of a function that no other function and no operator of its domain has."""
        function = self.protos[index]
        domain = canonical_domain(function.domain)
        taken = {each.name for each in self._index if each.domain == domain} | self.others.get(domain, set())
        number = 2
        while f"{function.name}_{number}" in taken or self._registry.operator(
            f"{function.name}_{number}", domain
        ):
            number += 1
        self.others.setdefault(domain, set()).add(f"{function.name}_{number}")
        return f"{function.name}_{number}"

    def scope(self, *arguments: Any) -> CallScope:
        """A scope of the model; the arguments are those of `Scope`."""
        found = CallScope(*arguments)
        found.functions = self
        return found

    def opsets(self, index: int) -> dict[str, int]:
        """The opset imports of a function: its own, or those of its model."""
        imports = self.protos[index].opset_import or self._model.opset_import
        return opset_imports(imports, self._model.ir_version)

    def callers_of(self, scope: Scope) -> Callers | None:
        """The calls of the function that a graph is in."""
        while scope.parent is not None:
            scope = scope.parent
        return scope.callers if isinstance(scope, CallScope) else None

    def results(self, proto: Any, scope: Scope, fact: Callable[[Scope, str], Any]) -> list[Any] | None:
        """A fact about each output of the function that a node calls, as this call sees it.

        Returns:
            `None` if the node calls none; nothing if it lies too deep in other calls.
        """
        index = self.find(proto)
        if index is None:
            return None
        with self.nested() as is_shallow:
            if not is_shallow:
                return []
            body = self._body(index, Call(Node.of(proto), proto, scope))
            return [fact(body, name) for name in body.outputs]

    @contextmanager
    def nested(self) -> Iterator[bool]:
        """Go one call deeper, or tell that this is too deep."""
        self._depth += 1
        try:
            yield self._depth <= DEEPEST
        finally:
            self._depth -= 1

    def _body(self, index: int, call: Call) -> Scope:
        """The function as a call sees it; calls that tell the same share it."""
        place = (call.scope, *call.node.outputs)
        if place in self._bodies_of_calls:
            return self._bodies_of_calls[place]
        callers = Callers(self, index, [call])
        key = (index, callers.key(call, callers.everything()))
        if key not in self._bodies:
            function = self.protos[index]
            found = self.scope(function, self.opsets(index), self._registry, Names(), Concessions(), {})
            found.callers = callers
            for node in function.node:
                found.known.update(node.output)
            self._bodies[key] = found
        self._bodies_of_calls[place] = self._bodies[key]
        return self._bodies[key]


def identity(function: Any) -> LocalFunction:
    """What a FunctionProto is known by."""
    return LocalFunction(canonical_domain(function.domain), function.name, getattr(function, "overload", ""))


def title(function: Any) -> str:
    """How messages call a function."""
    overload = getattr(function, "overload", "")
    return f"{canonical_domain(function.domain)}.{function.name}" + (f":{overload}" if overload else "")

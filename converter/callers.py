"""What the calls of a function tell of its inputs and attributes, as far as they agree."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from opshift.adapters.elsewhere import serialized
from opshift.adapters.node import Node, Tensor
from opshift.converter.types import Shape

if TYPE_CHECKING:
    from opshift.converter.functions import Functions
    from opshift.converter.scope import Scope

Kind = Literal["presence", "attribute", "type", "rank", "constant", "shape"]
ABSENT: Any = object()
"""In place of an attribute that neither the call states nor the function by default."""
LARGEST = 1024
"""Elements of a constant that is looked at through a call; weights have more."""
GRAPH_TYPES = (5, 10)
"""`AttributeProto.GRAPH` and `GRAPHS`: they belong to the graph of the call, and are converted there."""


class Asked(NamedTuple):
    """A fact about an input or attribute of a function."""

    kind: Kind
    name: str


class Call(NamedTuple):
    """A node that calls a function, and where it stands."""

    node: Node
    proto: Any
    scope: Scope


class View(Node):
    """A node of a function with what the calls of the function give it.

    Attributes:
        original: the node as it stands there.
    """

    __slots__ = ("original",)

    def __init__(self, original: Node, inputs: Sequence[str], attributes: Mapping[str, Any]) -> None:
        super().__init__(original.op_type, inputs, original.outputs, attributes, original.domain)
        self.original = original

    def references(self) -> dict[int, Any]:
        """By the identity of an attribute that the calls give, the attribute that refers to it."""
        stated = self.original.attributes
        return {
            id(value): stated[name] for name, value in self.attributes.items() if value is not stated[name]
        }


class Callers:
    """The calls of one function, and what they agree on.

    Attributes:
        index: the position of the function in its model.
        calls: the nodes that call it; none for a function that nothing reaches.
        disagreed: the facts that were asked for and differ between calls.
    """

    def __init__(self, functions: Functions, index: int, calls: Sequence[Call]) -> None:
        function = functions.protos[index]
        self.index = index
        self.calls = tuple(calls)
        self.disagreed: set[Asked] = set()
        self._functions = functions
        self._positions = {name: position for position, name in enumerate(function.input)}
        self._defaults = {each.name: each for each in getattr(function, "attribute_proto", ())}
        self._declared = (*function.attribute, *self._defaults)
        self._attributes: dict[str, Any] = {}
        # At once, and so from the outermost call inwards: what a call gives may be an input of its function.
        self._presence = {name: self._is_given(name) for name in self._positions}

    def element_type(self, name: str) -> str | None:
        """The element type of an input, if all calls that give it agree."""
        found: str | None = self._agreed(Asked("type", name))
        return found

    def shape(self, name: str) -> Shape | None:
        """The shape of an input, `None` for the dimensions that differ, or for all if the ranks do."""
        if self.rank(name) is None:
            return None
        exact: Shape | None = self._agreed(Asked("shape", name))
        if exact is not None:
            return exact
        shapes = [call.scope.shape(actual) for call, actual in self._actuals(name)]
        sizes = (set(each) for each in zip(*filter(None, shapes), strict=True))
        return tuple(each.pop() if len(each) == 1 else None for each in sizes)

    def rank(self, name: str) -> int | None:
        """The number of dimensions of an input, if all calls that give it agree."""
        found: int | None = self._agreed(Asked("rank", name))
        return found

    def constant(self, name: str) -> Tensor | None:
        """The value of an input that is the same constant in all calls."""
        if self._agreed(Asked("constant", name)) is None:
            return None
        call = self.calls[0]
        return call.scope.constant(self._actual(call, name))

    def attribute(self, name: str) -> Any:
        """The AttributeProto of an attribute; `ABSENT` if no call has it, `None` if calls differ."""
        if name not in self._attributes:
            agreed = self._agreed(Asked("attribute", name))
            self._attributes[name] = None if agreed is None else self._stated(self.calls[0], name)
        return self._attributes[name]

    def view(self, node: Node, scope: Scope) -> Node:
        """A node with the attributes that all calls give, and without the inputs that none does."""
        if not self.calls:
            return node
        attributes = dict(self._resolved(node)) if node.refers_to_caller else node.attributes
        left_out = {
            name for name in node.inputs if self._is_own(name, scope) and self._presence[name] is False
        }
        if attributes is node.attributes and not left_out:
            return node
        inputs = ["" if name in left_out else name for name in node.inputs]
        while left_out and inputs and not inputs[-1]:
            inputs.pop()
        return View(node, inputs, attributes)

    def unsettled(self, node: Node, scope: Scope) -> str:
        """What some calls give to a node and some do not; empty if there is no such input or attribute."""
        for name in node.inputs if self.calls else ():
            if self._is_own(name, scope) and self._presence[name] is None:
                self.disagreed.add(Asked("presence", name))
                return f"input {name!r}"
        for name, value in node.attributes.items():
            reference = getattr(value, "ref_attr_name", "")
            if reference and self.calls and self._has(reference) is None:
                return f"attribute {name!r}"
        return ""

    def key(self, call: Call, asked: Sequence[Asked]) -> Hashable:
        """What one call tells; calls with the same key agree."""
        return tuple(self._fact(call, each) for each in asked)

    def everything(self) -> list[Asked]:
        """All facts about all inputs and attributes."""
        kinds: tuple[Kind, ...] = ("presence", "type", "shape", "constant")
        inputs = [Asked(kind, name) for name in self._positions for kind in kinds]
        return [*inputs, *(Asked("attribute", name) for name in self._declared)]

    def _agreed(self, asked: Asked) -> Any:
        """The fact that all calls tell; `None` if they do not."""
        if asked.kind != "attribute" and asked.name not in self._positions:
            return None
        with self._functions.nested() as is_shallow:
            calls = self.calls if is_shallow else ()
            facts = (self._fact(each, asked) for each in calls if self._counts(each, asked))
            first = next(facts, None)
            if all(each == first for each in facts):
                return first
        self.disagreed.add(asked)
        return None

    def _counts(self, call: Call, asked: Asked) -> bool:
        """Whether a call tells anything: of types and shapes only those that give the input do."""
        return asked.kind not in ("type", "rank", "shape") or bool(self._actual(call, asked.name))

    def _fact(self, call: Call, asked: Asked) -> Any:
        if asked.kind == "attribute":
            return _comparable(self._stated(call, asked.name))
        if asked.kind == "presence":
            return self._gives(call, asked.name)
        actual = self._actual(call, asked.name)
        return _READ[asked.kind](call.scope, actual) if actual else None

    def _actual(self, call: Call, name: str) -> str:
        return call.node.input(self._positions[name])

    def _is_given(self, name: str) -> bool | None:
        """Whether the calls give an input; `None` if only some do."""
        told = {self._gives(call, name) for call in self.calls}
        return told.pop() if len(told) == 1 else None

    def _gives(self, call: Call, name: str) -> bool | None:
        """Whether a call gives an input: its function may itself not have been given it."""
        actual = self._actual(call, name)
        outer = self._functions.callers_of(call.scope)
        if outer is None or not outer._is_own(actual, call.scope) or not outer.calls:
            return bool(actual)
        found = outer._presence[actual]
        if found is None:
            outer.disagreed.add(Asked("presence", actual))
        return found

    def _actuals(self, name: str) -> Iterator[tuple[Call, str]]:
        return ((call, actual) for call in self.calls if (actual := self._actual(call, name)))

    def _is_own(self, name: str, scope: Scope) -> bool:
        """Whether a name means, in a graph of the function, an input of the function."""
        around: Scope | None = scope
        while around is not None and around.parent is not None:
            if around.is_local(name):
                return False
            around = around.parent
        return name in self._positions

    def _resolved(self, node: Node) -> Iterator[tuple[str, Any]]:
        for name, value in node.attributes.items():
            reference = getattr(value, "ref_attr_name", "")
            stated = self.attribute(reference) if reference else value
            if stated is None or stated is value:
                yield name, value
            elif stated is not ABSENT:
                yield name, _named(stated, name)

    def _has(self, name: str) -> bool | None:
        """Whether the calls state an attribute that has no default; `None` if only some do."""
        with self._functions.nested() as is_shallow:
            told = {self._states(call, name) for call in self.calls} if is_shallow else {None}
        found = told.pop() if len(told) == 1 else None
        if found is None:
            self.disagreed.add(Asked("attribute", name))
        return found

    def _states(self, call: Call, name: str) -> bool | None:
        stated = call.node.attributes.get(name)
        if name in self._defaults or stated is None or not stated.ref_attr_name:
            return name in self._defaults or stated is not None
        outer = self._functions.callers_of(call.scope)
        return outer._has(stated.ref_attr_name) if outer and outer.calls else True

    def _stated(self, call: Call, name: str) -> Any:
        """What a call states of an attribute: AttributeProto, `ABSENT`, or `None` for what is not known."""
        stated = call.node.attributes.get(name)
        if stated is not None and stated.ref_attr_name:
            outer = self._functions.callers_of(call.scope)
            stated = outer.attribute(stated.ref_attr_name) if outer and outer.calls else None
            if stated is None:
                return None
        if stated is None or stated is ABSENT:
            stated = self._defaults.get(name, ABSENT)
        return None if getattr(stated, "type", 0) in GRAPH_TYPES else stated


def _comparable(attribute: Any) -> Any:
    if attribute is None or attribute is ABSENT:
        return attribute
    bare = _named(attribute, "")
    bare.ClearField("doc_string")
    return serialized(bare)


def _named(attribute: Any, name: str) -> Any:
    copy = type(attribute)()
    copy.CopyFrom(attribute)
    copy.name = name
    return copy


def _small_constant(scope: Scope, name: str) -> Hashable:
    """A constant in a form that tells 0.0 from -0.0, and NaN from nothing."""
    size = 1
    for each in scope.shape(name) or ():
        size *= LARGEST + 1 if each is None else each
    found = scope.constant(name) if size <= LARGEST else None
    return found and (found.element_type, found.dims, tuple(map(repr, found.values)))


_READ: Mapping[Kind, Callable[[Scope, str], Any]] = {
    "type": lambda scope, name: scope.element_type(name),
    "rank": lambda scope, name: scope.rank(name),
    "constant": _small_constant,
    "shape": lambda scope, name: scope.shape(name),
}

"""Facts about inputs and attributes on which the calls of a local function agree."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, Protocol

from opshift.inference.facts import InferenceScope
from opshift.model.attributes import GRAPH, GRAPHS
from opshift.model.messages import AttributeProto, FunctionProto, NodeProto
from opshift.model.node import Node, Tensor
from opshift.model.offloaded_tensors import serialize
from opshift.model.types import Shape

CallFactKind = Literal["presence", "attribute", "element_type", "rank", "constant", "shape"]

ABSENT: Final = AttributeProto()
"""Marker for an attribute that the call does not set and that has no default; compared by identity."""

MAX_CONSTANT_ELEMENTS = 1024
"""Maximum number of elements of a constant to compare between calls; larger weights are not decoded."""


class Fact(NamedTuple):
    """Kind of a fact, and the name of the function input or attribute that the fact describes."""

    kind: CallFactKind
    name: str


class CallSite(NamedTuple):
    """Node that calls a function: its `Node`, its NodeProto, and the scope that contains the node."""

    node: Node
    proto: NodeProto
    scope: InferenceScope


class ResolvedNode(Node):
    """Node of a function body with attributes that the calls set, without inputs that the calls omit."""

    __slots__ = ("original",)

    def __init__(self, original: Node, inputs: Sequence[str], attributes: Mapping[str, object]) -> None:
        super().__init__(original.op_type, inputs, original.outputs, attributes, original.domain)
        self.original = original

    def references(self) -> dict[int, object]:
        """Map the `id` of each attribute from the calls to the attribute reference that it replaces."""
        provided = self.original.attributes
        changed = ((name, each) for name, each in self.attributes.items() if each is not provided[name])
        return {id(value): provided[name] for name, value in changed}


MAX_CALL_DEPTH = 40
"""Maximum depth of nested calls through which a fact is propagated; deeper facts are unknown."""


class NestedCalls:
    """Context manager that counts the nested calls through which a fact is propagated.

    `with` returns whether the depth is within `MAX_CALL_DEPTH`. A class is faster than `contextmanager`.
    """

    def __init__(self) -> None:
        self._depth = 0

    def __enter__(self) -> bool:
        self._depth += 1
        return self._depth <= MAX_CALL_DEPTH

    def __exit__(self, *error: object) -> None:
        self._depth -= 1


class _FunctionTable(Protocol):
    """Members of `FunctionTable` that `CallFacts` uses."""

    protos: tuple[FunctionProto, ...]
    nested_calls: NestedCalls

    def call_facts_of(self, scope: InferenceScope) -> CallFacts | None: ...

    def input_positions(self, index: int) -> Mapping[str, int]: ...

    def defaults(self, index: int) -> Mapping[str, AttributeProto]: ...

    def renamed_defaults(self, index: int) -> dict[tuple[str, str], AttributeProto]: ...


class CallFacts:
    """Calls of the function at `index` in `ModelProto.functions`, and the facts on which the calls agree.

    `calls` is empty for an unreachable function. `disagreements` are queried facts on which calls differ.
    """

    def __init__(self, functions: _FunctionTable, index: int, calls: Sequence[CallSite]) -> None:
        self.index = index
        self.calls = tuple(calls)
        self.disagreements: set[Fact] = set()
        self._compared: dict[Fact, int] = {}
        """Maps each fact to the number of calls, counted from the first, that were compared and agree."""
        self._agreed: dict[Fact, Any] = {}
        """Maps each fact to the value on which the compared calls agree."""
        self._shapes: dict[str, list[Shape | None]] = {}
        """Maps each input to its shapes in the calls compared so far."""
        self._functions = functions
        self._positions = functions.input_positions(index)
        self._attributes: dict[str, AttributeProto | None] = {}
        self._defaults = functions.defaults(index)
        self._renamed: dict[tuple[str, str], AttributeProto] = {}
        """Copies of attributes of the calls, by the old and the new name, for all nodes."""
        # Needs the `CallFacts` of calling functions: an argument may be an optional input of such a function.
        self._presence = self._provided_inputs()

    def element_type(self, name: str) -> str | None:
        """Return the element type of an input if all calls that provide the input agree, else `None`."""
        found: str | None = self._agreed_fact(Fact("element_type", name))
        return found

    def shape(self, name: str) -> Shape | None:
        """Return the shape of an input, with `None` for sizes that differ; `None` without a common rank.

        With a single call, the shape may have symbols.
        """
        if self.rank(name) is None:
            return None
        if len(self.calls) == 1:
            return self.calls[0].scope.symbolic_shape(self._argument_of(self.calls[0], name))
        exact: Shape | None = self._agreed_fact(Fact("shape", name))
        if exact is not None:
            return exact
        shapes = self._shapes.setdefault(name, [])
        for call in self.calls[len(shapes) :]:
            argument = self._argument_of(call, name)
            shapes.append(call.scope.shape(argument) if argument else None)
        sizes = (set(each) for each in zip(*filter(None, shapes), strict=True))
        return tuple(each.pop() if len(each) == 1 else None for each in sizes)

    def rank(self, name: str) -> int | None:
        """Return the rank of an input if all calls that provide the input agree, else `None`."""
        found: int | None = self._agreed_fact(Fact("rank", name))
        return found

    def constant(self, name: str) -> Tensor | None:
        """Return the value of an input if all calls pass the same small constant, else `None`."""
        if self._agreed_fact(Fact("constant", name)) is None:
            return None
        call = self.calls[0]
        return call.scope.constant(self._argument_of(call, name))

    def attribute(self, name: str) -> AttributeProto | None:
        """Return the attribute or default on which all calls agree (`ABSENT` without both), else `None`."""
        if name not in self._attributes:
            self._attributes[name] = self._common_attribute(name)
        return self._attributes[name]

    def _common_attribute(self, name: str) -> AttributeProto | None:
        if len(self.calls) != 1:
            agreed = self._agreed_fact(Fact("attribute", name))
            return None if agreed is None else self._attribute_of(self.calls[0], name)
        with self._functions.nested_calls as is_shallow:  # one call: nothing to serialize and compare
            return self._attribute_of(self.calls[0], name) if is_shallow else None

    def resolve_node(self, node: Node, scope: InferenceScope) -> Node:
        """Return a node without the inputs that all calls omit, and with the values of attribute references.

        References to attributes on which the calls differ stay.
        """
        if not self.calls:
            return node
        attributes = node.attributes
        if node.has_attribute_references:
            attributes = dict(self._resolved_attributes(node))
        candidates = {name for name in node.inputs if self._is_provided(name) is False}
        left_out = {name for name in candidates if self._is_function_input(name, scope)}
        if attributes is node.attributes and not left_out:
            return node
        inputs = ["" if name in left_out else name for name in node.inputs]
        while left_out and inputs and not inputs[-1]:
            inputs.pop()
        return ResolvedNode(node, inputs, attributes)

    def describe_disagreement(self, node: Node, scope: InferenceScope) -> str:
        """Name a node's input or attribute that only some calls provide, such as `input 'x'`; else `""`."""
        for name in node.inputs if self.calls else ():
            if self._is_function_input(name, scope) and self._is_provided(name) is None:
                self.disagreements.add(Fact("presence", name))
                return f"input {name!r}"
        for name, value in node.attributes.items():
            reference = getattr(value, "ref_attr_name", "")
            if reference and self.calls and self._is_set(reference) is None:
                return f"attribute {name!r}"
        return ""

    def fact_key(self, call: CallSite, asked: Sequence[Fact]) -> Hashable:
        """Return the values of the facts `asked` for one call, to compare calls."""
        return tuple(self._fact_of(call, each) for each in asked)

    def all_facts(self, call: CallSite) -> tuple[Fact, ...]:
        """Return the facts that distinguish calls, about the listed inputs and attributes of one call."""
        kinds: tuple[CallFactKind, ...] = ("presence", "element_type", "shape", "constant")
        inputs = [Fact(kind, name) for name in self._listed_inputs(call) for kind in kinds]
        return (*inputs, *(Fact("attribute", name) for name in call.node.attributes))

    def _agreed_fact(self, asked: Fact) -> Any:
        """Return the value of a fact on which all calls agree, or `None`; record disagreements.

        The result is `None`, too, if the name is not an input, or beyond `MAX_CALL_DEPTH`.
        """
        if asked.kind != "attribute" and asked.name not in self._positions:
            return None
        with self._functions.nested_calls as is_shallow:
            return self._compare_calls(asked) if is_shallow else None

    def _compare_calls(self, asked: Fact) -> Any:
        # `_fact_of` may raise `Unanswered`; the next query then continues with the same call.
        for position in range(self._compared.get(asked, 0), len(self.calls)):
            call = self.calls[position]
            # Only calls that provide the input have to agree.
            if asked.kind not in ("element_type", "rank", "shape") or self._argument_of(call, asked.name):
                found = self._fact_of(call, asked)
                if self._agreed.setdefault(asked, found) != found:
                    self.disagreements.add(asked)
                    return None
            self._compared[asked] = position + 1
        return self._agreed.get(asked)

    def _fact_of(self, call: CallSite, asked: Fact) -> Hashable:
        if asked.kind == "attribute":
            return _comparable_value(self._attribute_of(call, asked.name))
        if asked.kind == "presence":
            return self._provides(call, asked.name)
        argument = self._argument_of(call, asked.name)
        if asked.kind == "constant":
            return _small_constant(call.scope, argument) if argument else None
        found: Hashable = getattr(call.scope, asked.kind)(argument) if argument else None
        return found

    def arguments(self, name: str) -> list[tuple[InferenceScope, str]]:
        """Return (scope, value name) of each call's argument for an input; empty for other names."""
        if name not in self._positions:  # for example, an input of a subgraph that the conversion adds
            return []
        return [(call.scope, self._argument_of(call, name)) for call in self.calls]

    def _argument_of(self, call: CallSite, name: str) -> str:
        return call.node.input(self._positions[name])

    def _is_provided(self, name: str) -> bool | None:
        """Return whether the calls provide an input; `None` if some do, without calls, or for other names."""
        if name in self._presence:
            return self._presence[name]
        return False if self.calls and name in self._positions else None

    def _provided_inputs(self) -> dict[str, bool | None]:
        """Return whether the calls provide the inputs that they list; `None` if only some calls do.

        All calls omit the other inputs.
        """
        answers: dict[str, list[bool | None]] = {}
        for call in self.calls:
            for name in self._listed_inputs(call):
                answers.setdefault(name, []).append(self._provides(call, name))
        for found in answers.values():
            if len(found) < len(self.calls):
                found.append(False)
        return {name: found[0] if len({*found}) == 1 else None for name, found in answers.items()}

    def _listed_inputs(self, call: CallSite) -> Iterator[str]:
        """Yield the function inputs for which a call lists an argument, even an empty name."""
        names = self._functions.protos[self.index].input[: len(call.node.inputs)]
        return (name for position, name in enumerate(names) if self._positions[name] == position)

    def _provides(self, call: CallSite, name: str) -> bool | None:
        """Return whether a call provides an input; `None` if the calls of the calling function differ."""
        argument = self._argument_of(call, name)
        outer = self._functions.call_facts_of(call.scope)
        if outer is None or not outer._is_function_input(argument, call.scope) or not outer.calls:
            return bool(argument)
        found = outer._is_provided(argument)
        if found is None:
            outer.disagreements.add(Fact("presence", argument))
        return found

    def _is_function_input(self, name: str, scope: InferenceScope) -> bool:
        """Return whether a name in a graph of the function refers to an input of the function."""
        enclosing: InferenceScope | None = scope
        while enclosing is not None and enclosing.parent is not None:
            if enclosing.is_local(name):
                return False
            enclosing = enclosing.parent
        return name in self._positions

    def _resolved_attributes(self, node: Node) -> Iterator[tuple[str, object]]:
        for name, value in node.attributes.items():
            reference = getattr(value, "ref_attr_name", "")
            provided = self.attribute(reference) if reference else value
            if provided is None or provided is value:
                yield name, value
            elif provided is not ABSENT:
                is_default = provided is self._defaults.get(reference)
                copies = self._functions.renamed_defaults(self.index) if is_default else self._renamed
                if (reference, name) not in copies:
                    copies[reference, name] = _renamed_attribute(provided, name)
                yield name, copies[reference, name]

    def _is_set(self, name: str) -> bool | None:
        """Return whether an attribute has a default or all calls set it; `None` if some do, or if unknown."""
        with self._functions.nested_calls as is_shallow:
            answers = {self._sets_attribute(call, name) for call in self.calls} if is_shallow else {None}
        found = answers.pop() if len(answers) == 1 else None
        if found is None:
            self.disagreements.add(Fact("attribute", name))
        return found

    def _sets_attribute(self, call: CallSite, name: str) -> bool | None:
        provided = call.node.attributes.get(name)
        if name in self._defaults or provided is None or not provided.ref_attr_name:
            return name in self._defaults or provided is not None
        outer = self._functions.call_facts_of(call.scope)
        return outer._is_set(provided.ref_attr_name) if outer and outer.calls else True

    def _attribute_of(self, call: CallSite, name: str) -> AttributeProto | None:
        """Return an attribute of one call, or its default; `ABSENT` without both, `None` if it is unknown."""
        provided = call.node.attributes.get(name)
        if provided is not None and provided.ref_attr_name:
            outer = self._functions.call_facts_of(call.scope)
            provided = outer.attribute(provided.ref_attr_name) if outer and outer.calls else None
            if provided is None:
                return None
        if provided is None or provided is ABSENT:
            provided = self._defaults.get(name, ABSENT)
        # A subgraph attribute changes when the graph of the call is converted: treat it as unknown.
        return None if getattr(provided, "type", 0) in (GRAPH, GRAPHS) else provided


def _comparable_value(attribute: AttributeProto | None) -> Hashable:
    if attribute is None:
        return None
    if attribute is ABSENT:
        return "absent"
    bare = _renamed_attribute(attribute, "")
    bare.ClearField("doc_string")
    return serialize(bare)


def _renamed_attribute(attribute: AttributeProto, name: str) -> AttributeProto:
    copy = type(attribute)()
    copy.CopyFrom(attribute)
    copy.name = name
    return copy


def _small_constant(scope: InferenceScope, name: str) -> Hashable:
    """Return a small constant in hashable form, or `None` if it is unknown or large.

    Values are compared as text, because 0.0 equals -0.0 and NaN differs from itself.
    """
    size = 1
    for each in scope.shape(name) or ():
        size *= MAX_CONSTANT_ELEMENTS + 1 if each is None else each
    found = scope.constant(name) if size <= MAX_CONSTANT_ELEMENTS else None
    return found and (found.element_type, found.dims, tuple(map(repr, found.values)))

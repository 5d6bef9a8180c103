"""Expansion of calls of functions that call other functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy

from opshift.converter.functions.inlined_call import InlinedCall, rename_parameters, rename_values
from opshift.model.attributes import graphs_in
from opshift.model.declarations import declarations_in, rename_dimensions
from opshift.model.graphs import ContainerProto, nested_nodes
from opshift.model.indirect_reads import rename_shardings
from opshift.model.messages import FunctionProto, NodeProto, ValueInfoProto
from opshift.model.operator_ids import LocalFunction, called_function

MARK = "\0"
"""Prefix of placeholder names in a `CallPattern`; no valid name contains it."""


class ExpandedCall:
    """Nodes that replace a call; nodes that call other functions to inline are expanded, too.

    Attributes:
        nodes: the nodes, in order.
        value_info: declared types of intermediate values.
        has_identity: whether Identity nodes were added.
        waiting: the nodes that may be calls, the next one last.
        added: `id` of each added Identity. It calls the operator, even if a function has this name.
    """

    def __init__(self, fresh: Callable[[str], str]) -> None:
        self.nodes: list[NodeProto] = []
        self.value_info: list[ValueInfoProto] = []
        self.has_identity = False
        self.waiting: list[NodeProto] = []
        self.added: set[int] = set()
        self.fresh = fresh

    def add_call(self, call: NodeProto, function: FunctionProto) -> None:
        """Queue the nodes of a function, instantiated for a call: they may be calls themselves."""
        instance = InlinedCall(call, function, self.fresh)
        self.has_identity |= bool(instance.identities)
        self.added.update(map(id, instance.identities))
        self.value_info += instance.value_info
        self.waiting += reversed(instance.nodes)

    def add_copy(self, pattern: CallPattern, call: NodeProto) -> None:
        """Add copies of the nodes of a pattern, with the names of a call."""
        names = {f"{MARK}<{position}": name for position, name in enumerate(call.input)}
        names |= {f"{MARK}>{position}": name for position, name in enumerate(call.output)}
        names |= {name: self.fresh(hint) for name, hint in pattern.created.items()}
        self.has_identity |= pattern.has_identity
        for value in pattern.value_info:
            self.value_info.append(deepcopy(value))
            self.value_info[-1].name = names[value.name]
            rename_dimensions(self.value_info[-1:], lambda name: names.get(name, name))
        for node in pattern.nodes:
            copy = type(node)()
            copy.CopyFrom(node)  # `CopyFrom` takes half as long as `deepcopy`
            _rename_values(copy, names)
            if call.name and node.name:  # In the pattern of a call with a name, node names start with MARK.
                copy.name = call.name + node.name.removeprefix(MARK)
            self.nodes.append(copy)


class CallPattern(ExpandedCall):
    """Expansion of a call with placeholder names; it is copied for all calls that differ only in names.

    Attributes:
        key: the serialized call without names.
        created: the original name in the function, by placeholder of a new value or dimension.
    """

    def __init__(self, key: bytes) -> None:
        super().__init__(self._create_name)
        self.key = key
        self.created: dict[str, str] = {}

    def _create_name(self, hint: str) -> str:
        name = f"{MARK}{len(self.created)}"
        self.created[name] = hint
        return name


class CallExpander:
    """Expander of calls; calls that differ only in names share one expansion, which is copied.

    Nested functions may contain many equal calls: copying an expansion is faster than expanding each call.
    """

    def __init__(
        self,
        functions: Mapping[LocalFunction, FunctionProto],
        callers: Sequence[ContainerProto],
        fresh: Callable[[str], str],
    ) -> None:
        self._functions = functions
        self._fresh = fresh
        self._shared = _shared_functions(functions, callers)
        self._seen: set[bytes] = set()
        self._patterns: dict[bytes, CallPattern] = {}

    def expand(self, call: NodeProto) -> ExpandedCall:
        """Return the nodes that replace a call."""
        result = ExpandedCall(self._fresh)
        result.waiting.append(call)
        unfinished = [result]
        while unfinished:
            current = unfinished[-1]
            while current.waiting and current is unfinished[-1]:
                self._expand_next(current, unfinished)
            if current is unfinished[-1]:
                unfinished.pop()
                if isinstance(current, CallPattern):
                    self._patterns[current.key] = current
        return result

    def _expand_next(self, current: ExpandedCall, unfinished: list[ExpandedCall]) -> None:
        """Process the next waiting node: keep it, expand it, copy its pattern, or start the pattern."""
        node = current.waiting.pop()
        name = called_function(node)
        function = self._functions.get(name)
        if function is None or id(node) in current.added:
            current.nodes.append(node)
            return
        if name not in self._shared:
            current.add_call(node, function)
            return
        nameless = _without_names(node)
        key = nameless.SerializeToString(deterministic=True)
        if key in self._patterns:
            current.add_copy(self._patterns[key], node)
        elif key not in self._seen:  # most calls with attributes occur once, so a pattern would not help
            self._seen.add(key)
            current.add_call(node, function)
        else:
            current.waiting.append(node)
            unfinished.append(CallPattern(key))
            unfinished[-1].add_call(nameless, function)


def _shared_functions(
    functions: Mapping[LocalFunction, FunctionProto], callers: Sequence[ContainerProto]
) -> set[LocalFunction]:
    """Return the functions that several nodes call.

    The pattern of a function with one call would be copied only into the pattern of its caller: in a long
    chain of such functions, each pattern would contain all later ones.
    """
    calls: Counter[LocalFunction] = Counter()
    waiting = [*callers]
    while waiting:
        for node in nested_nodes(waiting.pop()):
            called = called_function(node)
            if called in functions:
                if called not in calls:
                    waiting.append(functions[called])
                calls[called] += 1
    return {name for name, count in calls.items() if count > 1}


def _without_names(call: NodeProto) -> NodeProto:
    """Return a copy of a call with placeholders for its inputs, its outputs and its own name."""
    copy = deepcopy(call)
    placeholders = {name: f"{MARK}<{position}" for position, name in enumerate(call.input)}
    placeholders |= {name: f"{MARK}>{position}" for position, name in enumerate(call.output)}
    rename_shardings(copy, placeholders)
    copy.input[:] = [name and f"{MARK}<{position}" for position, name in enumerate(call.input)]
    copy.output[:] = [name and f"{MARK}>{position}" for position, name in enumerate(call.output)]
    copy.name = call.name and MARK
    return copy


def _rename_values(node: NodeProto, names: Mapping[str, str]) -> None:
    """Rename all values of a node and of its subgraphs, and the dimensions in subgraphs."""
    rename_parameters(node, names)
    for attribute in node.attribute:
        for graph in graphs_in(attribute):
            rename_values(graph, names)
            rename_dimensions(declarations_in(graph), lambda name: names.get(name, name))
            for inner in graph.node:
                _rename_values(inner, names)

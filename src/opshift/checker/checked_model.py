"""View of a model that checker rules read."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence, Set
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

from opshift.inference.call_facts import CallSite
from opshift.inference.function_scope import FunctionTable
from opshift.inference.infer_types import parameter_at
from opshift.inference.scope import Scope
from opshift.model.errors import InvalidModel
from opshift.model.graphs import ContainerProto, nested_nodes
from opshift.model.messages import FunctionProto, ModelProto
from opshift.model.node_key import NodeKey
from opshift.model.operator_ids import LocalFunction, called_function, declared_opsets, function_id
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry


class ModelSource(NamedTuple):
    """Model that cannot be checked completely: unreadable, with invalid text, or with too many errors."""

    location: str
    error: str = ""
    remedy: str = ""
    is_text: bool = True
    error_count: int = 0
    """The number of errors after which the check stopped, or 0 if the check did not stop."""


class PassedFacts:
    """Types and shapes of values with which nodes with one node key break no rule.

    Attributes:
        types: the types of all inputs and outputs of each such node.
        shapes: results of `shape_key` for such nodes.
        constants: positions of the inputs whose elements rules read.
    """

    def __init__(self) -> None:
        self.types: set[Hashable] = set()
        self.shapes: set[Hashable] = set()
        self.constants: set[int] = set()

    def add_shapes(self, key: Hashable, constants: Set[int]) -> None:
        """Add the `shape_key` of a node, unless it is `None` or lacks elements that the rules have read."""
        if key is not None and constants <= self.constants:
            self.shapes.add(key)
        self.constants |= constants


class CheckedModel:
    """A ModelProto, with data that the checks of its parts share.

    Attributes:
        functions: the functions by key; if several functions have the same key, the first one.
        call_sites: the calls of each function in the graphs and functions that are checked so far.
        certain_calls: the functions with a call outside of If branches and of functions that may not run.
        folder: the folder of the external data files; `None` if it is unknown.
        graph_names: the names of the graphs that are checked so far.
        digests: cached SHA1 digests of external data files, for tensors with a checksum.
        examined_links: external data files that the rule about links has examined.
        undefined_operators: the number of nodes of each operator without a definition, by domain, in the
            graphs and functions that are checked so far.
        passed_keys: the cache keys of values and tensors without findings.
        passed_nodes: nodes without findings by node key, for each pair of opset imports and whether the nodes
            are outside of functions.
    """

    location = "model"

    def __init__(self, proto: ModelProto, registry: Registry, folder: Path | None = None) -> None:
        self.proto = proto
        self.registry = registry
        self.folder = folder
        self.ir_version: int = proto.ir_version
        self.opsets = declared_opsets(proto.opset_import, self.ir_version)
        self.functions: dict[LocalFunction, FunctionProto] = {}
        for function in proto.functions:
            self.functions.setdefault(function_id(function), function)
        self.call_sites: dict[LocalFunction, list[CallSite]] = defaultdict(list)
        self.certain_calls: set[LocalFunction] = set()
        self.graph_names: list[str] = []
        self.digests: dict[Path, str] = {}
        self.examined_links: set[str] = set()
        self.undefined_operators: dict[str, Counter[str]] = defaultdict(Counter)
        self.passed_keys: set[Hashable] = set()
        self.passed_nodes: dict[Hashable, dict[NodeKey, PassedFacts]] = defaultdict(dict)

    @cached_property
    def calls(self) -> Mapping[LocalFunction, Set[LocalFunction]]:
        """The functions that each function calls, also in subgraphs."""
        return {
            key: self.functions.keys() & {called_function(node) for node in nested_nodes(function)}
            for key, function in self.functions.items()
        }

    @cached_property
    def call_cycle(self) -> Sequence[LocalFunction]:
        """The functions of one cycle of calls; empty if no calls form a cycle."""
        try:
            TopologicalSorter(self.calls).prepare()
        except CycleError as error:
            cycle: Sequence[LocalFunction] = error.args[1]
            return cycle
        return ()

    @cached_property
    def function_table(self) -> FunctionTable | None:
        """The functions for inference; `None` for a cycle of calls, or repeated names, or invalid imports."""
        if self.call_cycle:
            return None
        try:
            table = FunctionTable(self.proto, self.registry)
            for index in range(len(self.proto.functions)):
                table.opsets(index)
        except InvalidModel:
            return None
        return table

    @cached_property
    def function_order(self) -> Sequence[int]:
        """The positions of the functions; callers precede called functions if inference is possible."""
        if self.function_table is None:
            return range(len(self.proto.functions))
        positions = {function_id(function): index for index, function in enumerate(self.proto.functions)}
        return [positions[key] for key in reversed([*TopologicalSorter(self.calls).static_order()])]

    def new_scope(self, container: ContainerProto, opsets: Mapping[str, int]) -> Scope:
        """Return the scope of a main graph, a training graph or a function."""
        # Prefer a `Scope`, because models share its inference cache; a scope for functions has its own cache.
        if not self.functions or self.function_table is None:
            return Scope(container, opsets, self.registry, {})
        return self.function_table.scope(container, opsets, self.registry, {})

    @cached_property
    def all_opsets(self) -> Mapping[str, int]:
        """The opset imports of the model, and of its functions for domains that the model does not import."""
        opsets = dict(self.opsets)
        for function in self.proto.functions:
            opsets = {**declared_opsets(function.opset_import), **opsets}
        return opsets

    @cached_property
    def device_counts(self) -> Mapping[str, int]:
        """The number of devices of each device configuration, by name."""
        return {entry.name: entry.num_devices for entry in self.proto.configuration}

    @cached_property
    def attribute_types(self) -> Mapping[LocalFunction, Mapping[str, int]]:
        """The type of each function attribute, as a number; without a default, from its first reference."""
        found: dict[LocalFunction, dict[str, int]] = {}
        for key, function in self.functions.items():
            types = found[key] = {each.name: each.type for each in function.attribute_proto}
            for node in nested_nodes(function):
                for attribute in node.attribute:
                    if attribute.ref_attr_name:
                        types.setdefault(attribute.ref_attr_name, attribute.type)
        return found

    @cached_property
    def attribute_names(self) -> Mapping[LocalFunction, Set[str]]:
        """The names of the attributes of each function, with and without a default."""
        return {key: frozenset(attribute_names(each)) for key, each in self.functions.items()}

    @cached_property
    def required_inputs(self) -> Mapping[LocalFunction, Sequence[int]]:
        """The positions of the function inputs that nodes of each function require, in ascending order."""
        required = self._required_inputs()
        return {
            key: [position for position, name in enumerate(each.input) if (key, name) in required]
            for key, each in self.functions.items()
        }

    def _required_inputs(self) -> Set[tuple[LocalFunction, str]]:
        """Return pairs of a function and an input that nodes of its body require, directly or through calls.

        Nodes of subgraphs do not count: they may not run if the input is omitted.
        """
        required: set[tuple[LocalFunction, str]] = set()
        passed_on: dict[tuple[LocalFunction, str], list[tuple[LocalFunction, str]]] = defaultdict(list)
        for key, function in self.functions.items():
            opsets, inputs = declared_opsets(function.opset_import), frozenset(function.input)
            for node in function.node:
                called = called_function(node)
                formals = self.functions[called].input if called in self.functions else ()
                operator = self.registry.known_at(node.op_type, opsets.get(called.domain, 0), called.domain)
                for position, name in enumerate(node.input):
                    if name not in inputs:
                        continue
                    if position < len(formals):
                        passed_on[called, formals[position]].append((key, name))
                    elif called not in self.functions and _requires_input(operator, position):
                        required.add((key, name))
        pending = list(required)
        while pending:
            for caller in passed_on[pending.pop()]:
                if caller not in required:
                    required.add(caller)
                    pending.append(caller)
        return required


def attribute_names(function: FunctionProto) -> list[str]:
    """Return the names of a function's attributes, with and without a default."""
    return [*function.attribute, *(attribute.name for attribute in function.attribute_proto)]


def _requires_input(operator: OperatorVersion | None, position: int) -> bool:
    parameter = parameter_at(operator.inputs, position) if operator is not None else None
    return parameter is not None and parameter.option != "optional"

"""Workspace of one graph or function: names, constants and allowed deviations of its conversion."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import chain
from operator import index

from opshift.inference.facts import InferenceScope
from opshift.inference.scope import Scope
from opshift.model.errors import CannotConvert
from opshift.model.graphs import (
    ContainerProto,
    defined_values,
    mentioned_names,
    nested_containers,
)
from opshift.model.messages import NodeProto
from opshift.model.node import Graph, Node, Tensor, Value
from opshift.model.tensors import Payload, pack_tensor, payload_size
from opshift.registry.steps import Allow
from opshift.rewriting.constant_nodes import ANY_CONSTANT_SINCE, is_castable, needs_cast


class Allowances:
    """Deviations that the caller allows, see `Allow`, and their uses in one conversion, with reasons."""

    def __init__(self, allowed: Collection[Allow] = ()) -> None:
        self.allowed = frozenset(allowed)
        self.used: list[tuple[Allow, str]] = []

    def is_allowed(self, kind: Allow | None) -> bool:
        """Return whether the caller allows a kind of deviation; false for `None`."""
        return kind in self.allowed

    def allow(self, kind: Allow, reason: str) -> bool:
        """Return whether the caller allows a kind of deviation; if so, record its use with the reason."""
        if kind not in self.allowed:
            return False
        self.used.append((kind, reason))
        return True


class FreshNames:
    """Generator of names that do not occur in a model.

    Names are unique across the model, because a name in a subgraph must not hide a value of an outer graph.
    """

    def __init__(self) -> None:
        self.sources: list[Callable[[], Iterable[Iterable[str]]]] = []
        """Functions that return groups of used names; they are called before the first fresh name."""
        self.created: set[str] = set()
        self._existing: set[str] | None = None
        self._next_number: dict[str, int] = {}

    def avoid(self, *roots: ContainerProto) -> None:
        """Add the names in graphs or functions and all their subgraphs to the used names."""
        containers = nested_containers(roots)
        self.sources.append(lambda: (defined_values(*roots), *map(mentioned_names, containers)))

    def fresh(self, hint: str) -> str:
        """Return an unused name that starts with `hint`."""
        existing, created = self._existing, self.created
        if existing is None:
            groups = chain.from_iterable(names() for names in self.sources)
            existing = self._existing = set().union(*groups)
        number = self._next_number.get(hint, 0)
        name = f"{hint}_{number}" if number else hint
        while name in existing or name in created:
            number += 1
            name = f"{hint}_{number}"
        self._next_number[hint] = number + 1
        created.add(name)
        return name


ConstantKey = tuple[str, tuple[int, ...], Payload]
"""Element type, dimensions and packed elements of a constant."""


def constant_key(tensor: Tensor) -> ConstantKey:
    """Return the key of a constant: constants with equal keys share one name.

    Raises CannotConvert if the element type cannot represent the values, and TypeError if a dimension is not
    an integer, as in an invalid node with a shape of type float.
    """
    for size in tensor.dims:
        index(size)  # raises TypeError
    # Bytes instead of numbers, because 0.0 equals -0.0, and NaN differs from itself.
    return tensor.element_type, tensor.dims, pack_tensor(tensor)


class Workspace:
    """Names, constants and allowances that the steps of one graph's nodes request.

    Values that steps create become available to inference: the next step may query them.
    """

    def __init__(
        self, scope: Scope, names: FreshNames, allowances: Allowances, opset: int = ANY_CONSTANT_SINCE
    ) -> None:
        """`opset` is the target opset of the default domain."""
        self.scope = scope
        root: InferenceScope = scope
        while root.parent is not None:
            root = root.parent
        self._opset = opset
        self._is_in_function = root.is_function
        self._is_in_main_graph = root is scope and not root.is_function
        self.allowances = allowances
        self._names = names
        self.constant_bytes = 0
        """Size in bytes of the constants added so far."""
        self.shaped: dict[str, int | None] = {}
        """Values whose shape the converted model is to declare, each with its rank if it is known."""
        self.emits_graphs = False
        """Whether a step emitted a node with a new graph."""
        self._payloads: dict[str, Payload] = {}
        self._constant_names: dict[ConstantKey, str] = {}
        self._read_constants: set[str] = set()

    def fresh(self, hint: str) -> str:
        """Return an unused value name that starts with a hint."""
        return self._names.fresh(hint)

    def add_constant(self, tensor: Tensor) -> str:
        """Add a constant and return its name; equal constants share one name.

        Raises:
            CannotConvert: the element type cannot represent the values, or a function cannot hold them.
        """
        return self.add_keyed_constant(constant_key(tensor), tensor)

    def add_keyed_constant(self, key: ConstantKey, tensor: Tensor) -> str:
        """Add a constant with a known `constant_key`, and return its name like `add_constant`.

        Raises:
            CannotConvert: a function cannot hold the constant.
        """
        found = self._constant_names.get(key)
        if found is None:
            if self._is_in_function and needs_cast(tensor, self._opset) and not is_castable(tensor):
                reason = f"a function below opset 9 cannot hold a constant of type {tensor.element_type}"
                remedy = "inline the functions, or convert to opset 9 or newer"
                raise CannotConvert(reason, "function.constant", remedy=remedy)
            found = self._constant_names[key] = self._names.fresh("const")
            self.scope.added_constants[found] = tensor
            payload = self._payloads[found] = key[2]
            self.constant_bytes += payload_size(payload)
        return found

    def keep_constants(self, names: Iterable[str]) -> None:
        """Keep added constants that converted nodes read; only intermediate steps used the rest."""
        self._read_constants.update(names)

    def kept_constants(self) -> dict[str, Tensor]:
        """Return the added constants that converted nodes read, by name."""
        added = self.scope.added_constants
        return {name: tensor for name, tensor in added.items() if name in self._read_constants}

    def payloads_of(self, constants: Iterable[str]) -> dict[str, Payload]:
        """Return the packed elements of each of these added constants."""
        return {name: self._payloads[name] for name in constants}

    def cast_sources(self) -> dict[str, str]:
        """Map kept constants that a Constant node cannot hold below opset 9 to fresh names for Casts' inputs.

        Only functions, and subgraphs below IR version 4, need the Casts: other graphs can have initializers.
        """
        if self._is_in_main_graph or self._opset >= ANY_CONSTANT_SINCE:
            return {}
        kept = self.kept_constants().items()
        names = [name for name, tensor in kept if needs_cast(tensor, self._opset) and is_castable(tensor)]
        return {name: self.fresh(f"{name}_double") for name in names}

    def declare_shape(self, name: str, rank: int | None = None) -> None:
        """Request that the converted model declares the shape of a value, see `shape_declarations`."""
        self.shaped[name] = self.shaped.get(name) if rank is None else rank

    def shape_declarations(self) -> list[Value]:
        """Return the values to declare: those in `shaped` with a known rank and type that nodes compute.

        Values that the graph declares, and values in functions, are omitted.
        """
        scope = self.scope
        if scope.is_function or scope.declared_positions.keys() >= self.shaped.keys():
            return []
        # imported here: most conversions declare no shapes
        from opshift.rewriting.listed_shapes import ListedShapes

        declared = scope.declared_positions
        shapes, found = ListedShapes(scope), []
        records = {name: scope.producing_records.get(name) for name in self.shaped}
        # Declared Reshapes, too: their results determine the ranks of later values.
        positions = {
            name: record[0]
            for name, record in records.items()
            if record and (name not in declared or record[2] == "Reshape")
        }
        for name in sorted(positions, key=lambda each: (positions[each], each)):
            shape = shapes.computed_shape(name, self.shaped[name])
            element_type = None if shape is None or name in declared else scope.element_type(name)
            if element_type is not None:
                found.append(Value(name, element_type, shape))
        return found

    def allow(self, kind: Allow, reason: str) -> bool:
        """Return whether the caller allows a deviation; if so, record its use with the reason."""
        return self.allowances.allow(kind, reason)

    def is_allowed(self, kind: Allow) -> bool:
        """Return whether the caller allows a deviation, without recording its use."""
        return self.allowances.is_allowed(kind)

    def constant_type(self, name: str) -> str | None:
        """Return the element type of an added constant; `None` for other values."""
        found = self.scope.added_constants.get(name)
        return found.element_type if found else None

    def add_emitted(self, node: Node, opset: int) -> None:
        """Make the outputs of an emitted node available to inference."""
        self.scope.add_emitted(node, opset, self._names.created)

    def add_graph(self, graph: Graph) -> None:
        """Make the values of an emitted graph available to inference."""
        self.emits_graphs = True
        for value in graph.inputs:
            self.scope.declare(value)
        for each in (*graph.nodes, *graph.nodes_after):
            self.add_emitted(each.node, each.opset)


class NodeNames:
    """Names of the nodes of one graph: onnxruntime refuses a graph in which two nodes have the same name."""

    def __init__(self, nodes: Iterable[NodeProto]) -> None:
        self._names = FreshNames()
        self._names.sources.append(lambda: [{node.name for node in nodes}])

    def rename(self, copies: Iterable[NodeProto], kept: str = "") -> None:
        """Give unique names to added nodes that have a name; a node with the name `kept` keeps it."""
        for node in copies:
            if node.name and node.name != kept:
                node.name = self._names.fresh(node.name)

"""Workspace of one graph or function: the names and constants that its conversion adds."""

from collections.abc import Callable, Iterable
from itertools import chain

from opshift.inference.facts import InferenceScope
from opshift.inference.scope import Scope
from opshift.model.errors import CannotConvert
from opshift.model.graphs import (
    ContainerProto,
    NodeRecord,
    defined_values,
    mentioned_names,
    nested_containers,
)
from opshift.model.node import Graph, Node, Tensor, Value
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.model.tensors import Payload, pack_tensor, payload_size
from opshift.model.types import Shape
from opshift.registry.steps import Allow
from opshift.rewriting.allowances import Allowances
from opshift.rewriting.constant_nodes import ANY_CONSTANT_SINCE, is_castable, needs_cast


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

    Raises CannotConvert if the element type cannot represent the values.
    """
    # Bytes instead of numbers, because 0.0 equals -0.0, and NaN differs from itself.
    return tensor.element_type, tensor.dims, pack_tensor(tensor)


FUSED_BY_SHAPE = frozenset(("Erf", "Gelu", "LayerNormalization", "RMSNormalization", "ReduceMean"))
"""Operators of fusions that need the last dimension: models without them rarely benefit from other shapes."""


def _shape_of(name: str, record: NodeRecord, scope: Scope) -> Shape | None:
    """Return the shape of an output of a node; its dimensions may be unknown.

    Inferring all shapes takes several times as long as the conversion. The stored sizes of a Reshape suffice,
    and the rank of other values.
    """
    _, _, op_type, inputs, _ = record
    if op_type == "Reshape" and len(inputs) > 1:
        listed = _stored_sizes(inputs[1], scope)
        if listed is not None or scope.op_types.isdisjoint(FUSED_BY_SHAPE):
            return listed
        return scope.shape(name)
    rank = scope.rank(name)
    return None if rank is None else (None,) * rank


def _stored_sizes(name: str, scope: Scope) -> Shape | None:
    """Return the positive constants in a Concat of sizes, with `None` for all other sizes.

    Return `None` if the number of sizes is not evident from the nodes that compute them.
    """
    concat = scope.producing_records.get(name)
    if concat is None or not _is_standard(concat, "Concat", scope):
        return None
    sizes: list[int | None] = []
    for part in concat[3]:
        record = scope.producing_records.get(part)
        if record and _is_standard(record, "Unsqueeze", scope) and scope.rank(record[3][0]) == 0:
            sizes.append(None)  # with empty axes, the Unsqueeze of a list has any number of sizes
        elif scope.is_stored(part) and (known := scope.constant(part)) is not None:
            sizes += [int(each) if each > 0 else None for each in known.values]
        else:
            return None
    return tuple(sizes)


def _is_standard(record: NodeRecord, op_type: str, scope: Scope) -> bool:
    """Return whether a node has an operator of the default domain that no local function replaces."""
    is_operator = record[2] == op_type and canonical_domain(record[1]) == DEFAULT_DOMAIN
    return is_operator and not scope.is_call(record)


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
        self.shaped: set[str] = set()
        """Names of values whose shape the converted model is to declare."""
        self.emits_graphs = False
        """Whether a step emitted a node with a new graph."""
        self._payloads: dict[str, Payload] = {}
        self._constant_names: dict[ConstantKey, str] = {}
        self._read_constants: set[str] = set()

    def fresh(self, hint: str) -> str:
        """Return an unused value name that starts with a hint."""
        return self._names.fresh(hint)

    def add_constant(self, tensor: Tensor) -> str:
        """Add a constant and return its name; equal constants share one name."""
        return self.add_keyed_constant(constant_key(tensor), tensor)

    def add_keyed_constant(self, key: ConstantKey, tensor: Tensor) -> str:
        """Add a constant with a known `constant_key`, and return its name like `add_constant`."""
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
        """Keep added constants that converted nodes read; the others served intermediate steps only."""
        self._read_constants.update(names)

    def kept_constants(self) -> dict[str, Tensor]:
        """Return the added constants that converted nodes read, by name."""
        added = self.scope.added_constants
        return {name: tensor for name, tensor in added.items() if name in self._read_constants}

    def payloads_of(self, constants: Iterable[str]) -> dict[str, Payload]:
        """Return the packed elements of each of these added constants."""
        return {name: self._payloads[name] for name in constants}

    def cast_sources(self) -> dict[str, str]:
        """Return, by name of each kept constant that a Cast has to produce, a fresh name for its input.

        These constants cannot be initializers: functions have none, nor have subgraphs below IR version 4.
        """
        if self._is_in_main_graph or self._opset >= ANY_CONSTANT_SINCE:
            return {}
        kept = self.kept_constants().items()
        names = [name for name, tensor in kept if needs_cast(tensor, self._opset) and is_castable(tensor)]
        return {name: self.fresh(f"{name}_double") for name in names}

    def declare_shape(self, name: str) -> None:
        """Request a declaration of the shape of a value, see `shape_declarations`."""
        self.shaped.add(name)

    def shape_declarations(self) -> list[Value]:
        """Return the values in `shaped` of known rank that nodes compute and the graph does not declare."""
        scope = self.scope
        if scope.is_function:
            return []
        found = []
        for name in sorted(self.shaped):
            record = scope.producing_records.get(name)
            if record is None or scope.declared_type_proto(name) is not None:
                continue
            element_type, shape = scope.element_type(name), _shape_of(name, record, scope)
            if element_type is not None and shape is not None:
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

"""Workspace of one graph or function: the names and constants that its conversion adds."""

from collections.abc import Callable, Iterable
from itertools import chain

from opshift.inference.evaluator.element_facts import stored_tensor
from opshift.inference.facts import InferenceScope
from opshift.inference.scope import Scope
from opshift.inference.symbols import without_symbols
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
from opshift.model.tensors import Payload, element_count, pack_tensor, payload_size
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


def _computed_shape(name: str, rank: int | None, scope: Scope) -> Shape | None:
    """Return the shape of an output of a node, with `None` for all sizes that no list of sizes shows."""
    if reshape := _standard_producer(name, "Reshape", 2, scope):
        sizes = _listed_sizes(reshape[3][1], scope)
        if sizes is not None:
            return sizes
    elif rank is None:
        rank = scope.rank(name)
    return None if rank is None else (None,) * rank


def _listed_sizes(name: str, scope: Scope) -> Shape | None:
    """Return the sizes in a Concat of sizes, with `None` for sizes that are unknown or not positive.

    Return `None` if the number of sizes is not evident from the nodes that compute them: inferring all shapes
    takes several times as long as the conversion.
    """
    concat = _standard_producer(name, "Concat", 1, scope)
    sizes: list[int | None] = []
    for part in concat[3] if concat else ():
        found = _sizes_in(part, scope)
        if found is None:
            return None
        sizes += [size if size and size > 0 else None for size in found]
    return tuple(sizes) if concat else None


def _sizes_in(name: str, scope: Scope) -> Shape | None:
    """Return the sizes in a part of a list of sizes; `None` if their number is not evident."""
    stored = _stored_integers(name, scope)
    if stored is not None:
        return stored
    unsqueeze = _standard_producer(name, "Unsqueeze", 2, scope)
    if unsqueeze is None:
        return _sliced_sizes(name, scope)
    # The input of an Unsqueeze with one axis is a scalar. Empty axes keep a list of any length.
    axes = stored_tensor(scope, unsqueeze[3][1])
    return (None,) if axes is not None and element_count(axes) == 1 else None


def _sliced_sizes(name: str, scope: Scope) -> Shape | None:
    """Return the sizes in a Slice of a Shape; `None` if their number is not evident."""
    record = _standard_producer(name, "Slice", 3, scope)
    whole = _standard_producer(record[3][0], "Shape", 1, scope) if record else None
    if record is None or whole is None or scope.proto_of(whole).attribute:
        return None
    shape = _evident_shape(whole[3][0], scope)
    # Axes are not read, because a list has only axis 0.
    start, end = (_stored_integers(each, scope) for each in record[3][1:3])
    has_step = len(record[3]) > 4 and _stored_integers(record[3][4], scope) != (1,)
    return None if shape is None or not start or not end or has_step else shape[start[0] : end[0]]


def _evident_shape(name: str, scope: Scope) -> Shape | None:
    """Return the shape of a graph input, or rank and channels of the output of a Conv with stored weights."""
    if name not in scope.producing_records:
        return without_symbols(scope.declared_shape(name))
    conv = _standard_producer(name, "Conv", 2, scope)
    if conv is None or conv[3][1] in scope.producing_records:
        return None
    weights = scope.declared_shape(conv[3][1])
    return (None, weights[0], *(None,) * (len(weights) - 2)) if weights else None


def _stored_integers(name: str, scope: Scope) -> tuple[int, ...] | None:
    """Return the elements of an int64 initializer or Constant; `None` for other values."""
    found = scope.constant(name) if scope.is_stored(name) else None
    return found.values if found is not None and found.element_type == "int64" else None


def _standard_producer(name: str, op_type: str, inputs: int, scope: Scope) -> NodeRecord | None:
    """Return the record of the node of the default domain that produces a value.

    Return `None` if its operator is not `op_type`, or if it has fewer than `inputs` inputs.
    """
    record = scope.producing_records.get(name)
    if record is None or record[2] != op_type or canonical_domain(record[1]) != DEFAULT_DOMAIN:
        return None
    return None if len(record[3]) < inputs or scope.is_call(record) else record


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

    def declare_shape(self, name: str, rank: int | None = None) -> None:
        """Request a declaration of the shape of a value, see `shape_declarations`."""
        self.shaped[name] = rank or self.shaped.get(name)

    def shape_declarations(self) -> list[Value]:
        """Return the values in `shaped` of known rank that nodes compute and the graph does not declare."""
        scope = self.scope
        if scope.is_function:
            return []
        found = []
        for name, rank in sorted(self.shaped.items()):
            record = scope.producing_records.get(name)
            if record is None or name in scope.declared_positions:
                continue
            shape = _computed_shape(name, rank, scope)
            element_type = None if shape is None else scope.element_type(name)
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

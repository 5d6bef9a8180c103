"""Version increments that changes of a model require, and changes of its inputs and outputs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal, NamedTuple, get_args

from opshift.adapters.core.type_guard import WIDER_FLOATS, WIDER_INTEGERS
from opshift.checker.ir_features.contents import FIRST_IR_WITH_STANDALONE_INITIALIZERS
from opshift.model.messages import GraphProto, ModelProto, SparseTensorProto, TensorProto, TypeProto
from opshift.model.model_version import VersionBump
from opshift.model.types import Dim, declared_dims, dims_text, nested_types, short_type, type_to_string


@dataclass(frozen=True)
class ModelChange:
    """Change of a model at a place, such as an input or a domain; `before` or `after` may be empty."""

    rule: str
    """Name of the rule, a key of `RULES`."""
    place: str
    before: str = ""
    after: str = ""

    def __str__(self) -> str:
        values = " -> ".join(filter(None, (self.before, self.after)))
        changed = f"{self.place}: {values}" if values else self.place
        return f"{self.rise.name} {self.rule}: {changed} ({RULES[self.rule].why})"

    @property
    def rise(self) -> VersionBump:
        """Least version increment that the change requires."""
        return RULES[self.rule].rise

    def as_dict(self) -> dict[str, str]:
        """Return plain data for JSON."""
        text = {"rule": self.rule, "rise": self.rise.name, "place": self.place, "why": RULES[self.rule].why}
        return {**text, "before": self.before, "after": self.after}


NONE, PATCH, MINOR, MAJOR = VersionBump


class ComparisonRule(NamedTuple):
    """Rule for one kind of change: the least version increment that it requires, and the reason."""

    rise: VersionBump
    why: str


RULES = {
    "INPUT_ADDED": ComparisonRule(MAJOR, "callers do not provide it, and it has no default"),
    "INPUT_TYPE_CHANGED": ComparisonRule(MAJOR, "callers provide the old type"),
    "OUTPUT_REMOVED": ComparisonRule(MAJOR, "callers may read it"),
    "OUTPUT_TYPE_CHANGED": ComparisonRule(MAJOR, "callers expect the old type"),
    "MEANING_CHANGED": ComparisonRule(MAJOR, "the same numbers have a different meaning"),
    "OPERATOR_MEANING_CHANGED": ComparisonRule(
        MAJOR, "the node is the same, but its operator version computes different results"
    ),
    "INPUT_ADDED_WITH_DEFAULT": ComparisonRule(MINOR, "callers need not provide it"),
    "INPUT_TYPE_WIDENED": ComparisonRule(MINOR, "the new type holds all values of the old type"),
    "OUTPUT_ADDED": ComparisonRule(MINOR, "callers need not read it"),
    "OUTPUT_TYPE_WIDENED": ComparisonRule(MINOR, "the new type holds all values of the old type"),
    "INPUT_REMOVED": ComparisonRule(MAJOR, "callers may provide it"),
    "INPUT_DEFAULT_REMOVED": ComparisonRule(MAJOR, "callers may rely on the default"),
    "INPUT_DEFAULT_ADDED": ComparisonRule(MINOR, "callers may omit it"),
    "INPUT_DEFAULT_CHANGED": ComparisonRule(PATCH, "callers that omit it get different results"),
    "INPUT_RENAMED": ComparisonRule(MAJOR, "callers refer to it by name"),
    "OUTPUT_RENAMED": ComparisonRule(MAJOR, "callers refer to it by name"),
    "INPUTS_REORDERED": ComparisonRule(MAJOR, "callers may refer to them by position"),
    "OUTPUTS_REORDERED": ComparisonRule(MAJOR, "callers may refer to them by position"),
    "INPUT_SHAPE_CHANGED": ComparisonRule(MAJOR, "callers provide the old shape"),
    "INPUT_SHAPE_NARROWED": ComparisonRule(MAJOR, "callers may provide shapes that are no longer allowed"),
    "INPUT_SHAPE_WIDENED": ComparisonRule(MINOR, "callers may provide more shapes"),
    "OUTPUT_SHAPE_CHANGED": ComparisonRule(MAJOR, "callers expect the old shape"),
    "OUTPUT_SHAPE_WIDENED": ComparisonRule(MAJOR, "callers may get shapes that they do not expect"),
    "OUTPUT_SHAPE_NARROWED": ComparisonRule(MINOR, "callers can rely on a more specific shape"),
    "DIMENSION_RENAMED": ComparisonRule(PATCH, "the same dimensions have to be equal"),
    "OPSET_RAISED": ComparisonRule(MINOR, "runtimes may have to be newer"),
    "OPSET_LOWERED": ComparisonRule(PATCH, "runtimes that supported the old opset still work"),
    "IR_VERSION_RAISED": ComparisonRule(MINOR, "readers may have to be newer"),
    "IR_VERSION_LOWERED": ComparisonRule(PATCH, "readers that supported the old IR version still work"),
    "OPERATORS_CHANGED": ComparisonRule(
        MAJOR,
        "outputs may mean something else; MINOR with --same-meaning, or if --verify finds equal outputs",
    ),
    "OPERATORS_REPLACED": ComparisonRule(MINOR, "outputs mean the same, as the caller states or a run shows"),
    "GRAPH_CHANGED": ComparisonRule(PATCH, "signature, operators and connections are the same"),
    "WEIGHTS_UNKNOWN": ComparisonRule(PATCH, "external data files were not compared or differ"),
    "METADATA_CHANGED": ComparisonRule(PATCH, "no result depends on it"),
}


Role = Literal["INPUT", "OUTPUT"]


@dataclass(frozen=True)
class SignatureValue:
    """Input or output of a graph; undeclared properties are empty, or `None` for the dimensions."""

    role: Role
    name: str
    position: int
    type: str
    unshaped_type: bytes
    """Serialized type without shapes and denotations; unlike `type`, it includes unknown types."""
    dims: tuple[Dim, ...] | None
    """Dimensions of the tensor; for a sequence, optional or map, of the tensors inside it."""
    denotations: Mapping[str, str]
    """Denotations of the type and its dimensions, see `denotations`."""
    default: bytes | None
    """Digest of the initializer of an input; `None` if it has no default."""

    @property
    def label(self) -> str:
        """Name of the value in messages."""
        return f"{self.role.lower()} {self.name!r}"


def _values_of(graph: GraphProto, role: Role) -> dict[str, SignatureValue]:
    """Return the inputs or outputs of a graph by name, in order."""
    named = {value.name for value in graph.input} if role == "INPUT" else frozenset()
    defaults = _initializer_digests(graph, named)
    values = {}
    for position, value in enumerate(graph.input if role == "INPUT" else graph.output):
        kind, name = value.type, value.name
        values[name] = SignatureValue(
            role,
            name,
            position,
            type_to_string(kind) or "",
            _serialized_without_shapes(kind),
            declared_dims(nested_types(kind)[-1]),
            denotations(kind),
            defaults.get(name),
        )
    return values


def _initializer_digests(graph: GraphProto, names: Set[str]) -> dict[str, bytes]:
    """Return digests of the initializers with one of the names, by name."""
    if not names:
        return {}
    tensors: dict[str, TensorProto | SparseTensorProto] = {
        each.values.name: each for each in graph.sparse_initializer
    }
    tensors |= {each.name: each for each in graph.initializer}
    return {name: _tensor_digest(tensor) for name, tensor in tensors.items() if name in names}


def _tensor_digest(tensor: TensorProto | SparseTensorProto) -> bytes:
    """Return a digest of a tensor.

    Offloaded payloads are not read: a conversion that changes one also changes its placeholder and type.
    """
    return sha256(tensor.SerializeToString(deterministic=True)).digest()


def denotations(kind: TypeProto) -> dict[str, str]:
    """Return the denotations of a type, with keys such as `type 0` (outermost) and `dimension 1`."""
    types = nested_types(kind)
    tensor = _tensor_of(types[-1])
    dims = tensor.shape.dim if tensor is not None else ()
    found = {f"type {depth}": each.denotation for depth, each in enumerate(types)}
    found |= {f"dimension {axis}": each.denotation for axis, each in enumerate(dims)}
    return {position: denotation for position, denotation in found.items() if denotation}


def _serialized_without_shapes(kind: TypeProto) -> bytes:
    copy = type(kind).FromString(kind.SerializeToString())
    types = nested_types(copy)
    for each in types:
        each.ClearField("denotation")
    tensor = _tensor_of(types[-1])
    if tensor is not None:
        tensor.ClearField("shape")
    return copy.SerializeToString(deterministic=True)


def _tensor_of(kind: TypeProto) -> TypeProto.Tensor | TypeProto.SparseTensor | None:
    name = kind.WhichOneof("value")
    return getattr(kind, name) if name in ("tensor_type", "sparse_tensor_type") else None


class DimensionPosition(NamedTuple):
    """Position of a dimension in an input or output."""

    role: str
    name: str
    number: int

    def __str__(self) -> str:
        return f"{self.name}[{self.number}]"


DimensionKey = str | DimensionPosition
"""Identity of a dimension without a fixed size: its name, or its position if it is unnamed."""

DimensionKeys = Mapping[DimensionPosition, DimensionKey]


def _dimension_name_changes(pairs: Sequence[tuple[SignatureValue, SignatureValue]]) -> Iterator[ModelChange]:
    """Yield renamed dimensions, and changes of the equality constraints that shared names express.

    Equal dimensions of inputs restrict callers, which narrows the shapes. Equal dimensions of outputs are a
    guarantee.
    """
    old_keys = _dimension_keys([(one, one.dims, other.dims) for one, other in pairs])
    new_keys = _dimension_keys([(one, other.dims, one.dims) for one, other in pairs])
    yield from _new_constraints(old_keys, new_keys, "NARROWED")
    yield from _new_constraints(new_keys, old_keys, "WIDENED")
    old_groups, new_groups = (list(_positions_by_key(each).values()) for each in (old_keys, new_keys))
    if old_groups == new_groups:
        for before, after in dict.fromkeys((old_keys[axis], new_keys[axis]) for axis in old_keys):
            if before != after and (isinstance(before, str) or isinstance(after, str)):
                yield ModelChange("DIMENSION_RENAMED", "dimension", _key_text(before), _key_text(after))


def _dimension_keys(
    rows: Sequence[tuple[SignatureValue, tuple[Dim, ...] | None, tuple[Dim, ...] | None]],
) -> dict[DimensionPosition, DimensionKey]:
    """Return the identity of each dimension without a fixed size in both models."""
    keys: dict[DimensionPosition, DimensionKey] = {}
    for value, dims, other_dims in rows:
        if dims is None or other_dims is None or len(dims) != len(other_dims):
            continue
        for number, dim in enumerate(dims):
            if not isinstance(dim, int) and not isinstance(other_dims[number], int):
                axis = DimensionPosition(value.role, value.name, number)
                keys[axis] = axis if dim is None else dim
    return keys


def _new_constraints(before: DimensionKeys, after: DimensionKeys, kind: str) -> Iterator[ModelChange]:
    """Yield a change for each name that makes dimensions equal in `after` but not in `before`."""
    for name, axes in _positions_by_key(after).items():
        if not isinstance(name, str):
            continue
        inputs = [axis for axis in axes if axis.role == "INPUT"]
        positions = ", ".join(map(str, axes))
        texts = [f"{positions} may differ", f"{positions} are equal"]
        if kind == "WIDENED":
            texts.reverse()
        if len({before[axis] for axis in inputs}) > 1:
            yield ModelChange(f"INPUT_SHAPE_{kind}", f"dimension {name}", *texts)
        if len(inputs) < len(axes) and len({before[axis] for axis in axes}) > 1:
            yield ModelChange(f"OUTPUT_SHAPE_{kind}", f"dimension {name}", *texts)


def _positions_by_key(keys: DimensionKeys) -> dict[DimensionKey, list[DimensionPosition]]:
    positions: dict[DimensionKey, list[DimensionPosition]] = defaultdict(list)
    for axis, key in keys.items():
        positions[key].append(axis)
    return positions


def _key_text(key: DimensionKey) -> str:
    return key if isinstance(key, str) else f"{key} without a name"


ValuesByName = Mapping[str, SignatureValue]


class Signature(NamedTuple):
    """Inputs and outputs of a model by name, in order, with its IR version."""

    ir_version: int
    values: Mapping[Role, ValuesByName]

    @classmethod
    def of(cls, model: ModelProto) -> Signature:
        """Return the signature of a model; later changes of the model do not affect it."""
        return cls(model.ir_version, {role: _values_of(model.graph, role) for role in get_args(Role)})

    def changes(self, new: ModelProto) -> Iterator[ModelChange]:
        """Yield the changes of the signature in a new version of the model."""
        shared: list[tuple[SignatureValue, SignatureValue]] = []
        for role, values in self.values.items():
            old_values, new_values = dict(values), _values_of(new.graph, role)
            if role == "INPUT":
                yield from _take_constants(old_values, self.ir_version, new)
            yield from _name_changes(role, old_values, new_values)
            shared += [(value, new_values[name]) for name, value in old_values.items() if name in new_values]
        for pair in shared:
            yield from _value_changes(*pair)
        yield from _dimension_name_changes(shared)


def _take_constants(
    values: dict[str, SignatureValue], old_ir_version: int, new: ModelProto
) -> Iterator[ModelChange]:
    """Remove inputs from `values` that are only initializers in the new model; yield changed contents.

    This applies if the old model is below IR version 4, and the new one is not: below IR version 4, every
    initializer has to be an input, but runtimes treat it as a constant.
    """
    last = FIRST_IR_WITH_STANDALONE_INITIALIZERS - 1
    if not old_ir_version <= last < new.ir_version:
        return
    inputs = {value.name for value in new.graph.input}
    removed = [value for name, value in values.items() if value.default is not None and name not in inputs]
    constants = _initializer_digests(new.graph, {value.name for value in removed})
    for value in removed:
        if value.name in constants:
            del values[value.name]
            if value.default != constants[value.name]:
                yield ModelChange("INPUT_DEFAULT_CHANGED", value.label)


def _name_changes(role: Role, old: ValuesByName, new: ValuesByName) -> Iterator[ModelChange]:
    """Yield the changes of names and order.

    A removed and an added value with the same position and type count as one renamed value.
    """
    removed = [value for name, value in old.items() if name not in new]
    added = [value for name, value in new.items() if name not in old]
    at_position = {(value.position, value.type): value for value in added}
    renamed = {
        value.name: at_position[value.position, value.type].name
        for value in removed
        if (value.position, value.type) in at_position
    }
    for value in removed:
        if value.name in renamed:
            yield ModelChange(f"{role}_RENAMED", value.label, value.name, renamed[value.name])
    for value in removed:
        if value.name not in renamed:
            yield ModelChange(f"{role}_REMOVED", value.label, value.type)
    new_names = {*renamed.values()}
    for value in added:
        if value.name in new_names:
            continue
        suffix = "_WITH_DEFAULT" if value.default is not None else ""
        yield ModelChange(f"{role}_ADDED{suffix}", value.label, "", value.type)
    # Report shared values in a new order, and new values that precede a shared value.
    before = [renamed.get(name, name) for name in old]
    remaining = [name for name in before if name in new]
    after, kept = list(new), {*remaining}
    # if values were removed, positions change anyway, and the removal is reported
    if [name for name in after if name in kept] != remaining or (
        len(remaining) == len(before) and after[: len(remaining)] != remaining
    ):
        yield ModelChange(f"{role}S_REORDERED", f"{role.lower()}s", ", ".join(old), ", ".join(new))


WIDER_TYPES = {**WIDER_INTEGERS, **WIDER_FLOATS, "float": ("double",), "complex64": ("complex128",)}
"""Element types to the wider types of the same kind (integer, float or complex), which hold all values."""


def _value_changes(old: SignatureValue, new: SignatureValue) -> Iterator[ModelChange]:
    yield from _type_changes(old, new)
    yield from _default_changes(old, new)
    yield from _shape_changes(old, new)
    for position, before in old.denotations.items():
        after = new.denotations.get(position, before)
        if before != after:
            yield ModelChange("MEANING_CHANGED", old.label, before, after)


def _type_changes(old: SignatureValue, new: SignatureValue) -> Iterator[ModelChange]:
    if (old.type, old.unshaped_type) != (new.type, new.unshaped_type):
        element = short_type(old.type)
        wider = [f"tensor({each})" for each in WIDER_TYPES.get(element, ())]
        kind = "WIDENED" if new.type in wider else "CHANGED"
        yield ModelChange(f"{old.role}_TYPE_{kind}", old.label, old.type, new.type)


def _default_changes(old: SignatureValue, new: SignatureValue) -> Iterator[ModelChange]:
    if old.default != new.default:
        kind = "ADDED" if old.default is None else "REMOVED" if new.default is None else "CHANGED"
        yield ModelChange(f"INPUT_DEFAULT_{kind}", old.label)


def _shape_changes(old: SignatureValue, new: SignatureValue) -> Iterator[ModelChange]:
    before, after = ("any rank" if each.dims is None else dims_text(each.dims) for each in (old, new))
    for kind in dict.fromkeys(_shape_kinds(old.dims, new.dims)):
        yield ModelChange(f"{old.role}_SHAPE_{kind}", old.label, before, after)


def _shape_kinds(old: tuple[Dim, ...] | None, new: tuple[Dim, ...] | None) -> Iterator[str]:
    if old is None or new is None:
        if old != new:
            yield "NARROWED" if old is None else "WIDENED"
    elif len(old) != len(new):
        yield "CHANGED"
    else:
        for before, after in zip(old, new, strict=True):
            if isinstance(before, int) and isinstance(after, int) and before != after:
                yield "CHANGED"
            elif isinstance(before, int) != isinstance(after, int):
                yield "WIDENED" if isinstance(before, int) else "NARROWED"

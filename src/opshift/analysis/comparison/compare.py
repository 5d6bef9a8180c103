"""Compare two versions of a model: the signature (inputs and outputs), and everything else."""

import filecmp
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, cast, get_args

from opshift.adapters.core.type_guard import WIDER_FLOATS, WIDER_INTEGERS
from opshift.analysis.comparison.operators import operator_changes
from opshift.analysis.comparison.result import Comparison, ModelChange
from opshift.checker.ir_features.contents import FIRST_IR_WITH_STANDALONE_INITIALIZERS
from opshift.model.errors import reading_text
from opshift.model.files import ModelLike, model_of
from opshift.model.graphs import require_graph, require_limited_depth
from opshift.model.locations import folder_of
from opshift.model.messages import (
    GraphProto,
    Message,
    ModelProto,
    SparseTensorProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
)
from opshift.model.offloaded_tensors import EXTERNAL, read_external_data
from opshift.model.operator_ids import opset_imports
from opshift.model.tensor_pieces import TENSOR, tensor_fields
from opshift.model.types import Dim, declared_dims, dims_text, nested_types, short_type, type_to_string
from opshift.registry.registry import Registry, default_registry

IMAGE_PREFIX = "image."
"""Case-insensitive prefix of `metadata_props` keys that describe images, see ONNX's MetadataProps.md."""

Folders = tuple[Path | None, Path | None]
"""Folder of each model; `None` for a model that is not a file."""


def content_changes(
    old: ModelProto, new: ModelProto, folders: Folders, registry: Registry
) -> Iterator[ModelChange]:
    """Yield all changes except changes of the signature."""
    yield from _version_changes(old, new)
    yield from _meaning_changes(old, new)
    operators = tuple(operator_changes(old, new, registry))
    yield from operators
    if not operators and not _same_graph(old, new):
        yield ModelChange("GRAPH_CHANGED", "graph")
    if external_data_may_differ(old, new, folders):
        yield ModelChange("WEIGHTS_UNKNOWN", "weights")
    if not _same_metadata(old, new):
        yield ModelChange("METADATA_CHANGED", "metadata")


def _version_changes(old: ModelProto, new: ModelProto) -> Iterator[ModelChange]:
    before, after = _highest_opsets(old), _highest_opsets(new)
    versions = [("OPSET", each, before.get(each, 0), after.get(each, 0)) for each in {**before, **after}]
    versions.append(("IR_VERSION", "IR version", old.ir_version, new.ir_version))
    for rule, place, old_version, new_version in versions:
        if old_version != new_version:
            kind = "RAISED" if new_version > old_version else "LOWERED"
            yield ModelChange(f"{rule}_{kind}", place, str(old_version or ""), str(new_version or ""))


def _highest_opsets(model: ModelProto) -> dict[str, int]:
    """Return the highest opset of each domain that the model or one of its functions imports."""
    opsets = opset_imports(model.opset_import, model.ir_version)
    for function in model.functions:
        for domain, opset in opset_imports(function.opset_import).items() if function.opset_import else ():
            opsets[domain] = max(opset, opsets.get(domain, 0))
    return opsets


def _meaning_changes(old: ModelProto, new: ModelProto) -> Iterator[ModelChange]:
    before, after = _image_metadata(old), _image_metadata(new)
    for key in filter(after.__contains__, before):
        if before[key] != after[key]:
            yield ModelChange("MEANING_CHANGED", f"metadata {key}", before[key], after[key])


def _image_metadata(model: ModelProto) -> dict[str, str]:
    """Return the metadata of images in lower case, because keys and values are case-insensitive."""
    # protobuf may return bytes for text that is not UTF-8
    props = {str(each.key).lower(): str(each.value).lower() for each in model.metadata_props}
    return {key: value for key, value in props.items() if key.startswith(IMAGE_PREFIX)}


def _external_files(model: ModelProto) -> set[str]:
    """Return the external data files of all tensors, such as attributes and initializers of subgraphs."""
    with reading_text():
        tensors = (each for each in _tensors_of(model) if each.data_location == EXTERNAL)
        return {read_external_data(each).location for each in tensors} - {""}


def _tensors_of(model: ModelProto) -> Iterator[TensorProto]:
    pending: list[Message] = [model]
    while pending:
        message = pending.pop()
        name = message.DESCRIPTOR.name
        if name == TENSOR:
            yield cast("TensorProto", message)
            continue
        parts = tensor_fields()[name]
        for field, value in message.ListFields():
            if field.number in parts:
                pending += value if parts[field.number].is_repeated else (value,)


def external_data_may_differ(old: ModelProto, new: ModelProto, folders: Folders) -> bool:
    """Return whether external data files with the same name may differ between the folders of the models."""
    names = _external_files(old) & _external_files(new)
    old_folder, new_folder = folders
    if old_folder is None or new_folder is None:
        return bool(names)
    try:
        return not all(filecmp.cmp(old_folder / name, new_folder / name, shallow=False) for name in names)
    except (OSError, ValueError):  # a missing file, or a name with a zero byte, is not an error here
        return True


def _same_graph(old: ModelProto, new: ModelProto) -> bool:
    """Return whether all parts that may affect results are equal."""
    # initializers of inputs are defaults, which are part of the signature
    inputs = {value.name for graph in (old.graph, new.graph) for value in graph.input}
    old_weights, new_weights = (
        [each for each in graph.initializer if each.name not in inputs] for graph in (old.graph, new.graph)
    )
    return (
        _serialize(old_weights) == _serialize(new_weights)
        and _same_fields(old.graph, new.graph, ("node", "sparse_initializer", "quantization_annotation"))
        and _same_fields(old, new, ("functions", "training_info", "configuration"))
    )


def _same_metadata(old: ModelProto, new: ModelProto) -> bool:
    texts = ("producer_name", "producer_version", "domain", "doc_string")
    return (
        all(getattr(old, field) == getattr(new, field) for field in texts)
        and (old.graph.name, old.graph.doc_string) == (new.graph.name, new.graph.doc_string)
        and _same_fields(old, new, ("metadata_props",))
        and _same_fields(old.graph, new.graph, ("metadata_props", "value_info"))
        and _same_value_texts(old, new)
    )


def _same_value_texts(old: ModelProto, new: ModelProto) -> bool:
    """Return whether inputs and outputs in both models have equal doc strings, denotations and metadata."""
    for field in ("input", "output"):
        old_values = {value.name: value for value in getattr(old.graph, field)}
        for value in getattr(new.graph, field):
            before = old_values.get(value.name)
            if before is not None and _value_texts(before) != _value_texts(value):
                return False
    return True


def _value_texts(value: ValueInfoProto) -> tuple[object, ...]:
    metadata = [(each.key, each.value) for each in value.metadata_props]
    return value.doc_string, _denotations(value.type), metadata


def _same_fields(old: Message, new: Message, fields: Iterable[str]) -> bool:
    """Return whether repeated fields of two messages are equal, even if their classes differ."""
    return all(_serialize(getattr(old, each)) == _serialize(getattr(new, each)) for each in fields)


def _serialize(messages: Iterable[Message]) -> list[bytes]:
    return [each.SerializeToString(deterministic=True) for each in messages]


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
    """Denotations of the type and its dimensions, see `_denotations`."""
    default: bytes | None
    """Serialized initializer of an input; `None` if it has no default."""

    @property
    def label(self) -> str:
        """Name of the value in messages."""
        return f"{self.role.lower()} {self.name!r}"


def values_of(graph: GraphProto, role: Role) -> dict[str, SignatureValue]:
    """Return the inputs or outputs of a graph by name, in order."""
    named = {value.name for value in graph.input} if role == "INPUT" else frozenset()
    defaults = initializer_values(graph, named)
    values = {}
    for position, value in enumerate(graph.input if role == "INPUT" else graph.output):
        kind, name = value.type, value.name
        values[name] = SignatureValue(
            role,
            name,
            position,
            type_to_string(kind) or "",
            _unshaped(kind),
            declared_dims(nested_types(kind)[-1]),
            _denotations(kind),
            defaults.get(name),
        )
    return values


def initializer_values(graph: GraphProto, names: Set[str] | None = None) -> dict[str, bytes]:
    """Return the serialized initializers by name; by default, all of them."""
    tensors: dict[str, TensorProto | SparseTensorProto] = {
        each.values.name: each for each in graph.sparse_initializer
    }
    tensors |= {each.name: each for each in graph.initializer}
    return {
        name: tensor.SerializeToString(deterministic=True)
        for name, tensor in tensors.items()
        if names is None or name in names
    }


def _denotations(kind: TypeProto) -> dict[str, str]:
    """Return the denotations of a type, of the types inside it and of dimensions, by their positions."""
    types = nested_types(kind)
    tensor = _tensor_of(types[-1])
    dims = tensor.shape.dim if tensor is not None else ()
    found = {f"type {depth}": each.denotation for depth, each in enumerate(types)}
    found |= {f"dimension {axis}": each.denotation for axis, each in enumerate(dims)}
    return {position: denotation for position, denotation in found.items() if denotation}


def _unshaped(kind: TypeProto) -> bytes:
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


def dimension_name_changes(pairs: Sequence[tuple[SignatureValue, SignatureValue]]) -> Iterator[ModelChange]:
    """Yield changes of the equality constraints that shared dimension names express.

    Equal dimensions of inputs restrict callers, which narrows the shapes. Equal dimensions of outputs are a
    guarantee.
    """
    old_keys = _keys([(one, one.dims, other.dims) for one, other in pairs])
    new_keys = _keys([(one, other.dims, one.dims) for one, other in pairs])
    yield from _new_constraints(old_keys, new_keys, "NARROWED")
    yield from _new_constraints(new_keys, old_keys, "WIDENED")
    old_groups, new_groups = (list(_positions_by_key(each).values()) for each in (old_keys, new_keys))
    if old_groups == new_groups:
        for before, after in dict.fromkeys((old_keys[axis], new_keys[axis]) for axis in old_keys):
            if before != after and (isinstance(before, str) or isinstance(after, str)):
                yield ModelChange("DIMENSION_RENAMED", "dimension", _key_text(before), _key_text(after))


def _keys(
    rows: Sequence[tuple[SignatureValue, tuple[Dim, ...] | None, tuple[Dim, ...] | None]],
) -> dict[DimensionPosition, DimensionKey]:
    """Return the identity of each dimension that has no fixed size in either model."""
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


def compare(
    old: ModelLike, new: ModelLike, *, same_meaning: bool = False, registry: Registry | None = None
) -> Comparison:
    """Compare two versions of a model, and determine the required increment of `model_version`.

    Meanings of inputs and outputs are compared if both models declare them: denotations of types, and
    metadata of images. External data files are compared if both models are paths.

    Operators are compared at the opsets of the new model, to which the old one is converted if possible. A
    node in both models has a new meaning if no conversion between their opsets keeps the node. If operators,
    attributes or connections changed, outputs may mean something else, which requires a higher MAJOR version
    unless the caller states that they mean the same. `verify` compares the outputs of both models.

    Args:
        old: a ModelProto of opshift or `onnx`, serialized bytes, a path, or a file object.
        new: a model in one of the same forms.
        same_meaning: the outputs mean the same, although operators changed: a higher MINOR version is enough.
        registry: operator definitions; by default the project's own.

    Returns:
        All changes, the most severe first.

    Raises:
        InvalidModel: `old` or `new` is not a model.
    """
    old_model, new_model = (model_with_graph(each) for each in (old, new))
    changes: list[ModelChange] = []
    shared: list[tuple[SignatureValue, SignatureValue]] = []
    for role in get_args(Role):
        old_values, new_values = values_of(old_model.graph, role), values_of(new_model.graph, role)
        if role == "INPUT":
            changes += _take_constants(old_values, old_model, new_model)
        changes += _name_changes(role, old_values, new_values)
        shared += [(value, new_values[name]) for name, value in old_values.items() if name in new_values]
    for pair in shared:
        changes += _value_changes(*pair)
    changes += dimension_name_changes(shared)
    definitions = registry or default_registry()
    changes += content_changes(old_model, new_model, (folder_of(old), folder_of(new)), definitions)
    changes.sort(key=lambda change: -change.rise)
    found = Comparison(tuple(changes), old_model.model_version, new_model.model_version)
    return found.with_same_meaning() if same_meaning else found


def model_with_graph(given: ModelLike) -> ModelProto:
    """Return the model as a message; raise InvalidModel if it has no graph, or nests graphs too deeply."""
    model: ModelProto = model_of(given)[0]
    require_graph(model, str(given) if isinstance(given, str | os.PathLike) else "")
    require_limited_depth(model)
    return model


ValuesByName = Mapping[str, SignatureValue]


def _take_constants(
    values: dict[str, SignatureValue], old: ModelProto, new: ModelProto
) -> Iterator[ModelChange]:
    """Remove inputs from `values` that are only initializers in the new model; yield changed contents.

    This applies if the old model is below IR version 4, and the new one is not: below IR version 4, every
    initializer has to be an input, but runtimes treat it as a constant.
    """
    last = FIRST_IR_WITH_STANDALONE_INITIALIZERS - 1
    if not old.ir_version <= last < new.ir_version:
        return
    constants = initializer_values(new.graph)
    inputs = {value.name for value in new.graph.input}
    for name, value in list(values.items()):
        if value.default is not None and name in constants and name not in inputs:
            del values[name]
            if value.default != constants[name]:
                yield ModelChange("INPUT_DEFAULT_CHANGED", value.label)


def _name_changes(role: Role, old: ValuesByName, new: ValuesByName) -> Iterator[ModelChange]:
    """Yield the changes of names and order. A renamed value keeps its position and type."""
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
    # report shared values in a new order, and a new value that precedes a shared value
    before = [renamed.get(name, name) for name in old]
    remaining = [name for name in before if name in new]
    after, kept = list(new), {*remaining}
    # if values were removed, positions change anyway, and the removal is reported
    if [name for name in after if name in kept] != remaining or (
        len(remaining) == len(before) and after[: len(remaining)] != remaining
    ):
        yield ModelChange(f"{role}S_REORDERED", f"{role.lower()}s", ", ".join(old), ", ".join(new))


WIDER_TYPES = {**WIDER_INTEGERS, **WIDER_FLOATS, "float": ("double",), "complex64": ("complex128",)}
"""For each element type, the types that hold all its values."""


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

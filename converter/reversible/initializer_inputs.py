"""Initializers that a conversion removes from the graph inputs, and a conversion back adds again."""

from collections.abc import Sequence, Set

from opshift.converter.reversible.record import RecordedInput, damaged_record
from opshift.model.graphs import sort_by_keys
from opshift.model.messages import DecodeError, GraphProto, ValueInfoProto
from opshift.model.types import declared_dims


def recorded_inputs(graph: GraphProto, names: Set[str]) -> tuple[RecordedInput, ...]:
    """Return the record entries of the graph inputs with these names."""
    return tuple(
        RecordedInput(position=position, value=value.SerializeToString(deterministic=True).hex())
        for position, value in enumerate(graph.input if names else ())
        if value.name in names
    )


def restore_inputs(graph: GraphProto, recorded: Sequence[RecordedInput]) -> None:
    """Give graph inputs their recorded declarations and positions, after initializers became inputs.

    An initializer that was edited keeps its new declaration.
    """
    originals = _read_declarations(recorded)
    positions = {original.name: each.position for each, original in zip(recorded, originals, strict=True)}
    by_name = {original.name: original for original in originals}
    others = [value.name for value in graph.input if value.name not in positions]
    order = list(others)
    for name in sorted(positions, key=positions.__getitem__):
        order.insert(positions[name], name)
    for value in graph.input:
        original = by_name.get(value.name)
        if original is not None and _declares(original, value):
            # `value` may be a message of onnx, and `CopyFrom` accepts only the same class
            value.Clear()
            value.MergeFromString(original.SerializeToString(deterministic=True))
    places = {name: place for place, name in enumerate(order)}
    sort_by_keys(graph.input, [places[value.name] for value in graph.input])


def _read_declarations(recorded: Sequence[RecordedInput]) -> list[ValueInfoProto]:
    try:
        return [ValueInfoProto.FromString(bytes.fromhex(each.value)) for each in recorded]
    except DecodeError as error:
        raise damaged_record() from error


def _declares(original: ValueInfoProto, value: ValueInfoProto) -> bool:
    """Return whether a recorded declaration allows the element type and sizes that `value` declares."""
    before, after = original.type.tensor_type, value.type.tensor_type
    dims, sizes = declared_dims(original.type), declared_dims(value.type)
    if before.elem_type != after.elem_type or dims is None or sizes is None:
        return before.elem_type == after.elem_type
    return len(dims) == len(sizes) and all(
        not isinstance(dim, int) or dim == size for dim, size in zip(dims, sizes, strict=True)
    )

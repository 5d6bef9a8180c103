"""Conversion of types and tensors from narrow element types to wider ones with the same values."""

from collections.abc import Mapping

from opshift.converter.internal_types.float_formats import widened_floats
from opshift.model.element_types import BY_NAME, BY_NUMBER, ELEMENT_BITS
from opshift.model.messages import TensorProto, TypeProto
from opshift.model.offloaded_tensors import EXTERNAL, with_payload
from opshift.model.tensors import PACKED_BITS, element_count, unpacked_bytes


def type_numbers(wider: Mapping[str, str]) -> dict[int, int]:
    """Map the number of each narrow type in `TensorProto.DataType` to the number of its wider type."""
    return {BY_NAME[name].number: BY_NAME[wide].number for name, wide in wider.items()}


def widen_tensor(tensor: TensorProto, numbers: Mapping[int, int]) -> bool:
    """Widen the elements of a tensor in place; return `False` if its data are external or invalid."""
    if tensor.data_type not in numbers:
        return True
    found = _widened(tensor, numbers[tensor.data_type])
    if found is not None:
        tensor.ClearField("int32_data")
        tensor.raw_data, tensor.data_type = found, numbers[tensor.data_type]
    return found is not None


def _widened(tensor: TensorProto, number: int) -> bytes | None:
    """Return `raw_data` in the type with this number; `None` for external data or invalid dimensions."""
    name, wide = BY_NUMBER[tensor.data_type].name, BY_NUMBER[number].name
    if name in PACKED_BITS:
        return unpacked_bytes(tensor)
    loaded, count = with_payload(tensor), element_count(tensor)
    if loaded.data_location == EXTERNAL or count is None:
        return None
    size = ELEMENT_BITS[name] // 8 or 1
    data = loaded.raw_data
    if not loaded.HasField("raw_data"):
        data = b"".join((each & (1 << 8 * size) - 1).to_bytes(size, "little") for each in loaded.int32_data)
    return widened_floats(data, count, name, wide)


def widen_type(value_type: TypeProto, numbers: Mapping[int, int]) -> None:
    """Replace the narrow element types in a TypeProto."""
    kind = value_type.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(value_type, kind)
        if tensor.elem_type in numbers:
            tensor.elem_type = numbers[tensor.elem_type]
    elif kind in ("sequence_type", "optional_type"):
        widen_type(getattr(value_type, kind).elem_type, numbers)
    elif kind == "map_type":
        widen_type(value_type.map_type.value_type, numbers)

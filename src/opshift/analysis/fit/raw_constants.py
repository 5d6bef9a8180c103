"""Store constants as raw bytes: some runtimes misread the fields of some element types."""

from __future__ import annotations

from collections.abc import Collection

from opshift.model.element_types import BY_NAME, INTEGER_FIELDS, NAME_BY_NUMBER, element_bits
from opshift.model.messages import ModelProto
from opshift.model.model_tensors import model_tensors
from opshift.runtimes.constant_values import has_typed_field


def write_raw_constants(model: ModelProto, element_types: Collection[str]) -> None:
    """Store initializers and tensor attributes of some element types as raw bytes.

    Each element must be stored as one integer of whole bytes: integers, float16, bfloat16 and float8 types.
    """
    for tensor in model_tensors(model):
        name = NAME_BY_NUMBER.get(tensor.data_type, "")
        if name in element_types and has_typed_field(tensor):
            size = element_bits(BY_NAME[name]) // 8
            numbers = [each for field in INTEGER_FIELDS for each in getattr(tensor, field)]
            for field in INTEGER_FIELDS:
                tensor.ClearField(field)
            # A field may hold negative numbers, or more bits than an element has: mask them.
            tensor.raw_data = b"".join((each % 256**size).to_bytes(size, "little") for each in numbers)

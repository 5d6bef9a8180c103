"""Casts of inputs and outputs whose element types a conversion changed.

Values are cast outside of the converted model: Cast nodes in it would need other names for its values, also
for initializers and for values that subgraphs capture.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from opshift.analysis.verification.numpy_types import array_element_type, dtype_of
from opshift.model.element_types import element_names
from opshift.model.messages import ModelProto, ValueInfoProto
from opshift.model.types import type_to_string

FLOATS, INTEGERS = re.compile("double|b?float.*"), re.compile(r"u?int\d+")

SATURATING = re.compile("float8e[45].*")
"""Types to which Cast saturates: infinities and numbers out of range become the largest numbers."""


class InterfaceCasts(NamedTuple):
    """Casts of the inputs and outputs of a converted model.

    Attributes:
        inputs: new types by name, for inputs of the original model.
        outputs: original types by position, for outputs of the converted model.
        types: the original and the new types.
    """

    inputs: Mapping[str, str] = {}
    outputs: Mapping[int, str] = {}
    types: frozenset[str] = frozenset()

    def cast_inputs(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Return inputs of the original with the types of the converted model."""
        return {name: cast_value(value, self.inputs.get(name)) for name, value in feeds.items()}

    def cast_outputs(self, outputs: Iterable[object]) -> list[object]:
        """Return outputs of the converted model with the types of the original."""
        return [cast_value(value, self.outputs.get(position)) for position, value in enumerate(outputs)]


def interface_casts(original: ModelProto, converted: ModelProto) -> InterfaceCasts:
    """Return casts between float types, and between integer types; `verify` reports other type changes."""
    inputs = _changed_types(original.graph.input, converted.graph.input)
    outputs = _changed_types(original.graph.output, converted.graph.output)
    return InterfaceCasts(
        {name: new for name, (_, new) in inputs.items()},
        {
            position: outputs[value.name][0]
            for position, value in enumerate(converted.graph.output)
            if value.name in outputs
        },
        frozenset(each for pair in (*inputs.values(), *outputs.values()) for each in pair),
    )


def _changed_types(
    originals: Iterable[ValueInfoProto], converted: Iterable[ValueInfoProto]
) -> Mapping[str, tuple[str, str]]:
    """Return the original and the new element type of each value to cast, by name."""
    types = {value.name: _element_type(value) for value in converted}
    pairs = {value.name: (_element_type(value), types.get(value.name, "")) for value in originals}
    return {name: pair for name, pair in pairs.items() if _is_cast(*pair)}


def _element_type(value: ValueInfoProto) -> str:
    """Return the element type of a tensor, or of the tensors in a sequence or optional; else `""`."""
    names = list(element_names(type_to_string(value.type) or ""))
    return names[0] if len(names) == 1 else ""  # a map has a key type and a value type


def _is_cast(old: str, new: str) -> bool:
    return old != new and any(all(kind.fullmatch(each) for each in (old, new)) for kind in (FLOATS, INTEGERS))


def cast_value(value: Any, element_type: str | None) -> Any:
    """Return a tensor, or a sequence of tensors, with another type; numbers are rounded as by Cast.

    Values that are neither floats nor integers, or not of the same kind as the type, remain as they are.
    """
    if element_type is None:
        return value
    if isinstance(value, list | tuple):
        return [cast_value(each, element_type) for each in value]
    if not isinstance(value, np.ndarray | np.generic):
        return value
    array = np.asarray(value)
    if not _is_cast(array_element_type(array), element_type):
        return value
    dtype = dtype_of(element_type)
    with np.errstate(all="ignore"):  # numbers out of the range of the type are expected here
        if SATURATING.fullmatch(element_type):
            from ml_dtypes import finfo  # optional package, which `dtype_of` needs for these types

            largest = float(finfo(dtype).max)
            array = np.clip(array.astype(np.float64), -largest, largest)
        return array.astype(dtype)


def cast_like(value: Any, other: object) -> Any:
    """Return a value with the element type of another one if both are float or both are integer tensors."""
    return cast_value(value, array_element_type(other)) if isinstance(other, np.ndarray) else value

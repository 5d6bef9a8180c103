"""Types that IR versions added: element types, and types of values other than dense tensors.

Older IR versions have no equivalent of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from opshift.checker.ir_features.contents import Contents
from opshift.checker.ir_features.use import Use
from opshift.model.attributes import INT, types_in
from opshift.model.element_types import BY_NUMBER
from opshift.model.messages import TypeProto
from opshift.registry.ir_versions import ir_versions

TYPE_FEATURES = {
    "sparse_tensor_type": "sparse_types",
    "opaque_type": "opaque_types",
    "optional_type": "optional_types",
}
"""Feature of each kind of TypeProto that an IR version added."""

NO_EQUIVALENT = "it has no equivalent"

TYPE_REMEDY = "use another type in the framework that exports the model"


def find_types(contents: Contents) -> Iterator[Use]:
    """Yield every use of a newer type by a value, a tensor or an attribute."""
    newer = _newer()
    for path, value in contents.values:
        yield from _uses_in_type(value.type, f"{path}, value {value.name!r}", newer)
    for holder, tensor in contents.tensors:
        if tensor.data_type in newer:
            yield _element_type(newer[tensor.data_type], holder.place)
    for held in contents.attributes:
        if held.attribute.type == INT and held.attribute.i in newer:
            yield _element_type(newer[held.attribute.i], held.place)
        for declared in types_in(held.attribute):
            yield Use("type_attributes", held.place, NO_EQUIVALENT, TYPE_REMEDY)
            yield from _uses_in_type(declared, held.place, newer)


@cache
def _newer() -> dict[int, str]:
    """Return the names of element types that the oldest IR version lacks, by number."""
    return {
        number: kind.name for number, kind in BY_NUMBER.items() if kind.name in ir_versions().element_types
    }


def _uses_in_type(declared: TypeProto, place: str, newer: dict[int, str]) -> Iterator[Use]:
    """Yield the uses of newer types by a TypeProto and the types nested in it."""
    kind = declared.WhichOneof("value")
    if kind in TYPE_FEATURES:
        yield Use(TYPE_FEATURES[kind], place, NO_EQUIVALENT, TYPE_REMEDY)
    if kind in ("tensor_type", "sparse_tensor_type") and getattr(declared, kind).elem_type in newer:
        yield _element_type(newer[getattr(declared, kind).elem_type], place)
    elif kind in ("sequence_type", "optional_type"):
        yield from _uses_in_type(getattr(declared, kind).elem_type, place, newer)
    elif kind == "map_type":
        yield from _uses_in_type(declared.map_type.value_type, place, newer)


def _element_type(name: str, place: str) -> Use:
    return Use(name, place, NO_EQUIVALENT, TYPE_REMEDY)

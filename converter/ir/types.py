"""Types that IR versions added: of elements, and of values that are no dense tensors. None has a stand-in."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from opshift.converter.ir.contents import INT, Contents
from opshift.converter.ir.use import Use
from opshift.registry.element_types import BY_NUMBER
from opshift.registry.ir_versions import ir_versions

FEATURES = {
    "sparse_tensor_type": "sparse_types",
    "opaque_type": "opaque_types",
    "optional_type": "optional_types",
}
"""The kinds of TypeProto that IR versions added, and the features that they are."""
NOTHING = "nothing can stand for it"
REMEDY = "give the values another type in the framework that exports the model"


def find(contents: Contents) -> Iterator[Use]:
    """Every use of such a type by a value, a tensor or an attribute."""
    newer = _newer()
    for path, value in contents.values:
        yield from _of_type(value.type, f"{path}, value {value.name!r}", newer)
    for holder, tensor in contents.tensors:
        if tensor.data_type in newer:
            yield _element_type(newer[tensor.data_type], holder.place)
    for held in contents.attributes:
        if held.attribute.type == INT and held.attribute.i in newer:
            yield _element_type(newer[held.attribute.i], held.place)
        for stated in _stated(held.attribute):
            yield Use("type_attributes", held.place, NOTHING, REMEDY)
            yield from _of_type(stated, held.place, newer)


@cache
def _newer() -> dict[int, str]:
    """The element types that the oldest IR version lacks, by number."""
    return {
        number: each.name for number, each in BY_NUMBER.items() if each.name in ir_versions().element_types
    }


def _of_type(stated: Any, place: str, newer: dict[int, str]) -> Iterator[Use]:
    """Of a type and those that it is made of."""
    kind = stated.WhichOneof("value")
    if kind in FEATURES:
        yield Use(FEATURES[kind], place, NOTHING, REMEDY)
    if kind in ("tensor_type", "sparse_tensor_type") and getattr(stated, kind).elem_type in newer:
        yield _element_type(newer[getattr(stated, kind).elem_type], place)
    elif kind in ("sequence_type", "optional_type"):
        yield from _of_type(getattr(stated, kind).elem_type, place, newer)
    elif kind == "map_type":
        yield from _of_type(stated.map_type.value_type, place, newer)


def _stated(attribute: Any) -> list[Any]:
    return [*([attribute.tp] if attribute.HasField("tp") else []), *attribute.type_protos]


def _element_type(name: str, place: str) -> Use:
    return Use(name, place, NOTHING, REMEDY)

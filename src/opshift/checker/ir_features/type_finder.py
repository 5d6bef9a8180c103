"""Types that IR versions added: element types, and types of values other than dense tensors."""

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


def find_types(contents: Contents) -> Iterator[Use]:
    """Yield every use of a newer type by a value, a tensor or an attribute."""
    newer = _newer()
    for value in contents.values:
        yield from _uses_in_type(value.proto.type, value.place, newer)
    for holder, tensor in contents.tensors:
        if tensor.data_type in newer:
            yield _use(newer[tensor.data_type], holder.place)
    for held in contents.attributes:
        if held.proto.type == INT and held.proto.i in newer:
            yield _use(newer[held.proto.i], held.place)
        for declared in types_in(held.proto):
            yield _use("type_attributes", held.place)
            yield from _uses_in_type(declared, held.place, newer)


@cache
def _newer() -> dict[int, str]:
    """Return the names of element types that the oldest IR version lacks, by number."""
    newer = ir_versions().element_types
    return {number: kind.name for number, kind in BY_NUMBER.items() if kind.name in newer}


def _uses_in_type(declared: TypeProto, place: str, newer: dict[int, str]) -> Iterator[Use]:
    """Yield the uses of newer types by a TypeProto and the types nested in it."""
    kind = declared.WhichOneof("value")
    if kind is None:
        return
    content = getattr(declared, kind)
    if kind in TYPE_FEATURES:
        yield _use(TYPE_FEATURES[kind], place)
    if kind in ("tensor_type", "sparse_tensor_type") and content.elem_type in newer:
        yield _use(newer[content.elem_type], place)
    elif kind in ("sequence_type", "optional_type"):
        yield from _uses_in_type(content.elem_type, place, newer)
    elif kind == "map_type":
        yield from _uses_in_type(content.value_type, place, newer)


def _use(feature: str, place: str) -> Use:
    remedy = "use another type in the framework that exports the model"
    return Use(feature, place, "it has no equivalent", remedy)

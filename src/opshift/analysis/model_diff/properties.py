"""Differences between the fields of two messages, as texts."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import cast

from opshift.analysis.model_diff.result import PropertyChange
from opshift.model.attributes import TYPE_BY_NUMBER, graphs_in
from opshift.model.element_types import NAME_BY_NUMBER
from opshift.model.messages import (
    AttributeProto,
    FunctionProto,
    Message,
    TensorProto,
    TrainingInfoProto,
    ValueInfoProto,
)
from opshift.model.offloaded_tensors import EXTERNAL, read_external_data
from opshift.model.operator_ids import canonical_domain, function_label
from opshift.model.tensors import element_count, read_tensor
from opshift.model.types import declared_dims, dims_text, element_type_of, nested_types, type_to_string

MAX_TEXT = 200
"""Maximum number of characters of a text; longer texts are cut."""

MAX_SHOWN_ELEMENTS = 8
"""Maximum number of elements of a tensor that are shown; larger tensors are described by type and shape."""

NOUNS = {
    "opset_import": "opset",
    "metadata_props": "metadata",
    "value_info": "value",
    "attribute_proto": "attribute",
    "ir_version": "IR version",
}
"""Names of fields in texts; other fields keep their protobuf name, with spaces for underscores."""

KEYS = ("name", "key", "domain", "tensor_name", "values", "function_name")
"""Fields that identify a message in a repeated field."""


def property_changes(
    old: Message | None, new: Message | None, skipped: Iterable[str]
) -> Iterator[PropertyChange]:
    """Yield the fields of two messages that differ, except the skipped ones; `None` has no fields."""
    before, after = (_properties(each, frozenset(skipped)) for each in (old, new))
    for name in {**before, **after}:
        if name not in after:
            yield PropertyChange(name, value_text(before[name]), "")
        elif name not in before:
            yield PropertyChange(name, "", value_text(after[name]))
        elif not same_content(before[name], after[name]):
            texts = value_text(before[name]), value_text(after[name])
            yield PropertyChange(
                name, texts[0], texts[1] if texts[0] != texts[1] else f"{texts[1]}, other content"
            )
    shared = [
        [name for name in one if name in other and name.startswith(("input", "output"))]
        for one, other in ((before, after), (after, before))
    ]
    if shared[0] != shared[1]:
        yield PropertyChange("order of inputs and outputs", ", ".join(shared[0]), ", ".join(shared[1]))


def with_renames(changes: Iterable[PropertyChange], renames: Mapping[str, str]) -> list[PropertyChange]:
    """Replace the removal and the addition of each renamed value by one change."""
    found = {each.name: each for each in changes}
    for after, before in renames.items():
        for noun in ("input", "initializer", "value"):
            old, new = found.get(f"{noun} {before!r}"), found.get(f"{noun} {after!r}")
            if old and new and (old.before, new.after) != ("", "") and not (old.after or new.before):
                del found[old.name]
                found[new.name] = PropertyChange(f"{new.name} renamed", before, after)
    return list(found.values())


def _properties(message: Message | None, skipped: frozenset[str]) -> Mapping[str, object]:
    """Return the values of set fields by name; elements of repeated fields get names such as `input 'x'`."""
    found: dict[str, object] = {}
    for descriptor, value in message.ListFields() if message is not None else ():
        noun = NOUNS.get(descriptor.name, descriptor.name.replace("_", " "))
        if descriptor.name in skipped:
            continue
        if hasattr(value, "add"):
            for position, each in enumerate(value):
                name = f"{noun} {_key_text(each) or position}"
                found[name if name not in found else f"{name}, entry {position}"] = each
        else:
            found[noun] = value
    return found


def _key_text(message: Message) -> str:
    if type(message).__name__ == "FunctionProto":
        return function_label(cast("FunctionProto", message))
    field = next((each for each in KEYS if hasattr(message, each)), "")
    key = getattr(message, field, "")
    if field == "domain":
        return canonical_domain(str(key))
    key = getattr(key, "name", key)  # a TensorProto, such as `values` of a sparse tensor
    return repr(str(key)) if key else ""


def same_content(one: object, other: object) -> bool:
    """Return whether two field values are equal; messages are compared as bytes, whatever their classes."""
    return _comparable_content(one) == _comparable_content(other)


def _comparable_content(value: object) -> object:
    serialize = getattr(value, "SerializeToString", None)
    if serialize is not None:
        return serialize(deterministic=True)
    return value if isinstance(value, str | bytes | int | float) else list(value)  # type: ignore[call-overload]


def value_text(value: object) -> str:
    """Return a field value as text, cut after `MAX_TEXT` characters."""
    text = " ".join(_field_text(value).split())
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}..."


def _field_text(value: object) -> str:
    kind = type(value).__name__
    if kind in TEXTS:
        return TEXTS[kind](value)
    if isinstance(value, bytes):
        return value[:MAX_TEXT].decode(errors="backslashreplace")
    if isinstance(value, float):
        return f"{value:.7g}"
    if isinstance(value, str | int) or hasattr(value, "SerializeToString"):
        return str(value) or "empty"
    return f"[{', '.join(map(_field_text, list(value)[:MAX_TEXT]))}]"  # type: ignore[call-overload]


def tensor_text(tensor: TensorProto) -> str:
    """Return the type and shape of a tensor as text, and the elements if there are few."""
    kind, count = NAME_BY_NUMBER.get(tensor.data_type, str(tensor.data_type)), element_count(tensor)
    text = f"{kind}{dims_text(tuple(tensor.dims))}"
    if tensor.data_location == EXTERNAL:
        return f"{text} in {read_external_data(tensor).location}"
    value = read_tensor(tensor) if count is not None and count <= MAX_SHOWN_ELEMENTS else None
    return f"{text} = {', '.join(map(_field_text, value.values)) or 'empty'}" if value else text


def _declaration_text(value: ValueInfoProto) -> str:
    dims = declared_dims(nested_types(value.type)[-1])
    return f"{element_type_of(value.type) or 'unknown type'}{'' if dims is None else dims_text(dims)}"


def _training_text(info: TrainingInfoProto) -> str:
    return f"number of nodes: {len(info.initialization.node)} initialize, {len(info.algorithm.node)} train"


def _attribute_text(attribute: AttributeProto) -> str:
    if attribute.ref_attr_name:
        return f"@{attribute.ref_attr_name}"
    graphs = [f"graph, number of nodes: {len(each.node)}" for each in graphs_in(attribute)]
    kind = TYPE_BY_NUMBER.get(attribute.type)
    return ", ".join(graphs) or (_field_text(getattr(attribute, kind.field)) if kind else "empty")


TEXTS: Mapping[str, Callable[..., str]] = {
    "TensorProto": tensor_text,
    "ValueInfoProto": _declaration_text,
    "AttributeProto": _attribute_text,
    "OperatorSetIdProto": lambda each: str(each.version),
    "StringStringEntryProto": lambda each: str(each.value) or "empty",
    "FunctionProto": lambda each: f"function, number of nodes: {len(each.node)}",
    "TrainingInfoProto": _training_text,
    "TypeProto": lambda each: type_to_string(each) or "unknown type",
}
"""Functions that format a message, by its class name; protobuf formats other messages."""

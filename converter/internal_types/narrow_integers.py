"""Integers of 4 and 2 bits that stay inside of a model, as integers of 8 bits with the same values."""

from opshift.converter.internal_types.narrow_results import EXACT_SOURCES, Widening
from opshift.converter.internal_types.widen_types import types_in_model, widen_types
from opshift.model.element_types import element_names
from opshift.model.errors import CannotConvert
from opshift.model.graphs import root_graphs
from opshift.model.messages import ModelProto, TypeProto
from opshift.model.tensors import PACKED_BITS
from opshift.model.types import type_to_string
from opshift.registry.registry import Registry

WIDER = {name: "int8" if name.startswith("int") else "uint8" for name in PACKED_BITS}

REMEDY = "convert to opset 21 or later, or use integers of 8 bits"


def replace_narrow_integers(
    model: ModelProto, registry: Registry
) -> tuple[ModelProto | None, dict[str, CannotConvert]]:
    """Return a copy of a model without narrow integers, or the reasons against it by the places of nodes."""
    values = (value for graph in root_graphs(model) for value in (*graph.input, *graph.output))
    found = types_in_model(model, registry).among(WIDER.keys(), 1)
    if not found or any(_is_narrow(value.type) for value in values):
        return None, {}
    return widen_types(model, registry, Widening(WIDER, EXACT_SOURCES, REMEDY))


def _is_narrow(value_type: TypeProto) -> bool:
    return not WIDER.keys().isdisjoint(element_names(type_to_string(value_type) or ""))

"""Replace element types that a runtime lacks by wider types that hold the same values."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import NamedTuple

from opshift.analysis.fit.bridges import MOVED_AS
from opshift.converter.functions.inlining import inline_functions, inlining_obstacles
from opshift.converter.internal_types.narrow_results import NUMERIC_SOURCES, Widening
from opshift.converter.internal_types.widen_types import types_in_model, widen_types
from opshift.model.element_types import type_string
from opshift.model.graphs import count_model_nodes, max_node_count
from opshift.model.messages import ModelProto
from opshift.model.operator_ids import opset_imports
from opshift.model.shared_data import FrozenRecord
from opshift.model.types import element_type_of
from opshift.registry.registry import Registry
from opshift.registry.runtimes.files import get_runtime
from opshift.registry.runtimes.runtime import Runtime

WIDER: Mapping[str, tuple[str, ...]] = {**MOVED_AS, "bfloat16": ("float",)}
"""Types that hold all values of a narrow type, the narrowest first."""


class InterfaceChange(FrozenRecord):
    """Replacement of the type of an input or output by a wider type with the same values."""

    kind: str
    """`input` or `output`."""
    name: str
    before: str
    """Type such as `bfloat16`, or `seq(tensor(bfloat16))`."""
    after: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}: {self.after} instead of {self.before}"


class WidenedModel(NamedTuple):
    """Copy of a model with wider types.

    Attributes:
        model: the copy.
        replacements: sentences about the replaced types.
        added_nodes: number of nodes of the copy, minus those of the model.
    """

    model: ModelProto
    replacements: tuple[str, ...]
    added_nodes: int


def without_lacking_types(model: ModelProto, runtime: Runtime, registry: Registry) -> WidenedModel | None:
    """Return a copy of a model without the element types that a runtime cannot cast.

    Returns:
        The copy; `None` if the runtime casts all types, if one of them cannot be replaced, or if the copy
        would have too many nodes.
    """
    wider = {}
    for narrow in sorted(types_in_model(model, registry).among(WIDER.keys(), len(WIDER))):
        if not _casts(narrow, runtime, registry):
            found = next((each for each in WIDER[narrow] if _casts(each, runtime, registry)), None)
            if found is None:
                return None
            wider[narrow] = found
    if not wider:
        return None
    source, opsets = model, opset_imports(model.opset_import, model.ir_version)
    if model.functions and not any(inlining_obstacles(model, opsets, {}, registry)):
        source = deepcopy(model)
        inline_functions(source)  # the types of values in functions depend on the calls
    widened, _ = widen_types(source, registry, Widening(wider, NUMERIC_SOURCES, ""))
    count = 0 if widened is None else count_model_nodes(widened)
    if widened is None or count > max_node_count(model):
        return None
    replacements = tuple(f"all operators: {wide} instead of {narrow}" for narrow, wide in wider.items())
    return WidenedModel(widened, replacements, count - count_model_nodes(model))


def _casts(element_type: str, runtime: Runtime, registry: Registry) -> bool:
    """Return whether a runtime, or its fallback, casts a type to float and back in some opset."""
    cast = registry.operator("Cast")
    assert cast is not None, "Cast is in every registry"
    one, other = type_string(element_type), type_string("float")
    runtimes = (runtime, get_runtime(runtime.falls_back)) if runtime.falls_back else (runtime,)
    return any(
        each.kernel(version.id, {"T1": one, "T2": other})
        and each.kernel(version.id, {"T1": other, "T2": one})
        for each in runtimes
        for version in cast.versions
    )


def interface_changes(before: ModelProto, after: ModelProto) -> Iterator[InterfaceChange]:
    """Yield the inputs and outputs whose element types differ between two models."""
    pairs = {
        "input": (before.graph.input, after.graph.input),
        "output": (before.graph.output, after.graph.output),
    }
    for kind, (old, new) in pairs.items():
        types = {each.name: element_type_of(each.type) for each in new}
        for value in old:
            narrow, wide = element_type_of(value.type), types.get(value.name)
            if narrow and wide and narrow != wide:
                yield InterfaceChange(kind, value.name, narrow, wide)


def interface_remedy(changes: Sequence[InterfaceChange]) -> str:
    """Return the remedy if inputs and outputs need wider types."""
    more = f", and {len(changes) - 1:,} more" if len(changes) > 1 else ""
    option = "--allow interface-types (allow= in Python)"
    return f"give inputs and outputs wider types with {option}: {changes[0]}{more}"

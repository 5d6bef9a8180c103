"""Choice of other element types for a node if the runtime has no kernel for its element types."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import product
from typing import Final

from opshift.adapters.core.equivalents import TypeBridge
from opshift.adapters.core.type_guard import (
    TYPES_FOR_BRIDGE,
    WIDER_FLOATS,
    WIDER_INTEGERS,
    wider_types,
)
from opshift.model.element_types import BY_NAME, INTEGER_BITS, type_string
from opshift.model.operator_ids import DEFAULT_DOMAIN, OperatorId
from opshift.model.types import short_type
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry
from opshift.registry.runtimes.restrictions import Restriction
from opshift.registry.runtimes.runtime import Runtime
from opshift.registry.steps import Allow

MOVED_AS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("int4", "int2"), ("int8", "int32")),
    **dict.fromkeys(("uint4", "uint2"), ("uint8", "int32")),
    **dict.fromkeys(("float8e4m3fn", "float8e5m2", "float4e2m1"), ("float16", "float")),
    **dict.fromkeys(("float8e4m3fnuz", "float8e5m2fnuz"), ("float16", "float")),
    "float8e8m0": ("float",),
}
"""Types that hold all values of a narrow type, for operators that only move, select or compare values."""

GENERATED_AS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("bool", "int8", "uint8"), ("int32", "float")),
    **dict.fromkeys(("int32", "uint32", "int64", "uint64"), ("int64", "int32", "float")),
    "float": ("double",),
    "double": ("float",),
}
"""Types for constant values; the conversion refuses a value that the type does not represent."""

ANY_TYPE: Mapping[str, tuple[str, ...]] = dict.fromkeys(
    BY_NAME.keys() - {"undefined", "string"}, ("float", "int32")
)
"""Types to which inputs may be cast if an operator reads only their shapes."""

ZEROS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("bool", *INTEGER_BITS), ("bool", "float")),
    **dict.fromkeys(("double", "float", "float16", "bfloat16"), ("bool",)),
}
"""Types to which casts keep zero and nonzero values apart: small doubles may underflow in float."""

MOVED: Final = (*TYPES_FOR_BRIDGE["order"], MOVED_AS)

EXACT_TYPES: Final[Mapping[tuple[str, str], tuple[Mapping[str, tuple[str, ...]], ...]]] = {
    ("Cast", "T1"): MOVED,
    ("ConstantOfShape", "T2"): (*MOVED, GENERATED_AS),
    ("EyeLike", "T1"): (ANY_TYPE,),
    ("EyeLike", "T2"): (*MOVED, GENERATED_AS),
    ("Multinomial", "T2"): ({"int64": ("int32",), "int32": ("int64",)},),
    ("NonZero", "T"): (ZEROS,),
    ("RandomNormal", "T"): (WIDER_FLOATS,),
    ("RandomNormalLike", "T1"): (ANY_TYPE,),
    ("RandomNormalLike", "T2"): (WIDER_FLOATS,),
    ("RandomUniform", "T"): (WIDER_FLOATS,),
    ("RandomUniformLike", "T1"): (ANY_TYPE,),
    ("RandomUniformLike", "T2"): (WIDER_FLOATS,),
    ("Range", "T"): (WIDER_INTEGERS,),
    ("Shape", "T"): (ANY_TYPE,),
    ("Size", "T"): (ANY_TYPE,),
}
"""Tables of further types with the same result, by operator and type variable; best first."""

UNCHANGED_BY_CASTS: Final = frozenset(
    {
        "absent", "attributes", "computed", "dimensions", "empty", "equal_sizes", "fed", "odd_sizes",
        "opsets", "present", "ranked", "ranks", "single", "sized", "sized_axes", "stated",
    }
)  # fmt: skip
"""Keys of conditions that do not depend on the element types of a node, so that casts do not affect them."""


class Bridges:
    """Type bridges (casts around a node) for one runtime and one opset of the default domain."""

    def __init__(
        self, runtime: Runtime, registry: Registry, opset: int, allow: Collection[Allow] = ()
    ) -> None:
        self._runtime = runtime
        self._cast = registry.known_at("Cast", opset)
        self._allow = allow

    def find(self, version: OperatorVersion, types: Mapping[str, str]) -> tuple[TypeBridge, ...]:
        """Return the fewest type bridges that give a node a kernel in the runtime; empty if there are none.

        Args:
            version: the operator version.
            types: types such as `tensor(float)`, by type variable or by parameter name.
        """
        if not self._may_help(version, types):
            return ()
        stated = (each for each in version.outputs if each.type_attribute)
        formals = dict.fromkeys(each.type for each in (*version.inputs, *stated))
        variables = [each for each in formals if each in types]
        choices = [(None, *self._candidate_types(version, each, types)) for each in variables]
        for chosen in sorted(product(*choices), key=lambda each: len(each) - each.count(None)):
            bridges = tuple(
                TypeBridge(version.id, variable, short_type(types[variable]), replacement)
                for variable, replacement in zip(variables, chosen, strict=True)
                if replacement is not None
            )
            if bridges and self._runtime.kernel(version.id, _with_bridges(version, types, bridges)):
                return bridges
        return ()

    def _may_help(self, version: OperatorVersion, types: Mapping[str, str]) -> bool:
        """Return whether the runtime may refuse a node because of its types, not only of other properties."""
        notes = (*self._runtime.restrictions_of(version.id), *self._runtime.errors_of(version.id))
        is_accepted = bool(notes) and bool(self._runtime.kernel(version.id, types))
        return not is_accepted or not all(map(_ignores_casts, notes))

    def _candidate_types(
        self, version: OperatorVersion, variable: str, types: Mapping[str, str]
    ) -> Iterator[str]:
        is_input = any(each.type == variable for each in version.inputs)
        is_output = any(each.type == variable for each in version.outputs)
        element_type = short_type(types[variable])
        for each in dict.fromkeys(self._exact_types(version, variable, types)):
            casts = [(element_type, each)] * is_input + [(each, element_type)] * is_output
            if each != element_type and all(self._casts_right(*pair) for pair in casts):
                yield each

    def _exact_types(
        self, version: OperatorVersion, variable: str, types: Mapping[str, str]
    ) -> Iterator[str]:
        """Yield types of a variable with the same result, and with `approximate`, float for double."""
        element_type = short_type(types[variable])
        if version.bridge is not None:
            yield from wider_types(element_type, version.bridge)
        if version.bridge == "order":
            yield from MOVED_AS.get(element_type, ())
        # a number cast to a string depends on its type
        if version.domain == DEFAULT_DOMAIN and types.get("T2") != type_string("string"):
            for table in EXACT_TYPES.get((version.name, variable), ()):
                yield from table.get(element_type, ())
        if version.bridge is not None and element_type == "double" and "approximate" in self._allow:
            yield "float"

    def _casts_right(self, source: str, target: str) -> bool:
        """Return whether the runtime has a kernel of Cast for two types that is not known to be wrong."""
        cast = self._cast.id if self._cast else OperatorId(DEFAULT_DOMAIN, "Cast", 1)
        types = {"T1": type_string(source), "T2": type_string(target)}
        wrong = (each.when.types for each in self._runtime.errors_of(cast) if each.when)
        is_wrong = any(
            all(types[name] in each for name, each in listed.items()) for listed in wrong if listed
        )
        return bool(self._runtime.kernel(cast, types)) and not is_wrong


def _ignores_casts(note: Restriction) -> bool:
    """Return whether a restriction concerns the same nodes if their inputs and outputs are cast."""
    conditions = [each for each in (note.when, note.unless) if each is not None]
    # without conditions, only the reason describes the nodes, so casts may help
    return bool(conditions) and all(UNCHANGED_BY_CASTS.issuperset(each.parts) for each in conditions)


def _with_bridges(
    version: OperatorVersion, types: Mapping[str, str], bridges: tuple[TypeBridge, ...]
) -> dict[str, str]:
    """Return the types of a node between the casts of type bridges."""
    replaced = {each.variable: type_string(each.replacement) for each in bridges}
    formals = {each.name: each.type for each in (*version.inputs, *version.outputs)}
    return {name: replaced.get(formals.get(name, name), each) for name, each in types.items()}

"""Features that IR versions added: the functions that find and rewrite them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from opshift.adapters.rewriter import Concession
from opshift.converter.ir import (
    attribute_defaults,
    devices,
    function_values,
    functions,
    initializers,
    metadata,
    overloads,
    quantization,
    sparse,
    training,
    types,
)
from opshift.converter.ir.change import STANDALONE, since
from opshift.converter.ir.contents import Contents
from opshift.converter.ir.use import Use
from opshift.registry.ir_versions import ir_versions

Find = Callable[[Contents], Iterator[Use]]
Change = Callable[[Contents], None]


class Lowering(NamedTuple):
    """Rewrite of a model without a feature.

    Attributes:
        feature: its name in `ir_versions.yaml`.
        replacement: the description of what replaces it; empty if it is dropped.
        apply: the function that rewrites the model; `None` if the feature can only be dropped.
        allowance: the value of `allow` with which the feature is dropped.
        drop: the function that removes it.
        moves_nodes: whether the rewrite moves nodes, so that the contents have to be collected again.
    """

    feature: str
    becomes: str
    apply: Change | None
    concession: Concession | None = None
    drop: Change | None = None
    moves_nodes: bool = False


FINDERS: dict[Find, tuple[str, ...]] = {
    devices.find: ("device_configurations",),
    metadata.find: ("metadata",),
    overloads.find: ("overloads",),
    function_values.find: ("function_values",),
    attribute_defaults.find: ("attribute_defaults",),
    functions.find: ("functions",),
    training.find: ("training",),
    sparse.find_initializers: ("sparse_initializers",),
    sparse.find_attributes: ("sparse_attributes",),
    quantization.find: ("quantization_annotations",),
    initializers.find_standalone: (STANDALONE,),
    initializers.find_external: ("external_data",),
    types.find: (
        "opaque_types",
        "optional_types",
        "sparse_types",
        "type_attributes",
        *ir_versions().element_types,
    ),
}
"""Functions that find uses, with the features and element types that each can find."""
LOWERINGS: tuple[Lowering, ...] = (
    Lowering("device_configurations", "", None, "drop-devices", devices.drop),
    Lowering("metadata", "metadata of the model", metadata.move, "drop-metadata", metadata.drop),
    Lowering("functions", "inlined nodes", functions.inline, moves_nodes=True),
    Lowering("overloads", "functions with unique names", overloads.rename),
    Lowering("function_values", "value_info of the main graph", function_values.move),
    Lowering("attribute_defaults", "attributes of the calls", attribute_defaults.state),
    Lowering("training", "", None, "drop-training", training.drop),
    Lowering("sparse_initializers", "dense initializers", sparse.write_initializers),
    Lowering("sparse_attributes", "dense tensors", sparse.write_attributes),
    Lowering(
        "quantization_annotations",
        "metadata of the model",
        quantization.move,
        "drop-metadata",
        quantization.drop,
    ),
    Lowering("standalone_initializers", "graph inputs", initializers.make_inputs),
)
"""Rewrites in the order of their application: newest first, except that inlining precedes the rewrites of
function features, which it makes unnecessary."""
OF_FUNCTIONS = frozenset({"overloads", "function_values", "attribute_defaults"})
"""Features that a model without functions cannot have."""


def uses_in(contents: Contents) -> Iterator[Use]:
    """Yield uses of features that were added after IR version `contents.oldest`, up to `contents.newest`."""
    span = range(contents.oldest + 1, contents.newest + 1)
    for find, versions in _VERSIONS.items():
        if not versions.isdisjoint(span):
            yield from (use for use in find(contents) if since(use.feature) in span)


_VERSIONS = {find: frozenset(map(since, features)) for find, features in FINDERS.items()}
"""IR versions that added the features of each function."""

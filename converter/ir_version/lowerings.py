"""Features that IR versions added: the functions that find and rewrite them."""

from __future__ import annotations

from typing import NamedTuple

from opshift.checker.ir_features.finders import ModelRewrite
from opshift.converter.ir_version.functions import (
    inline_all_functions,
    move_function_value_info,
    rename_overloads,
    write_default_attributes,
)
from opshift.converter.ir_version.metadata import (
    drop_device_configurations,
    drop_metadata,
    drop_quantization_annotations,
    drop_training_info,
    move_metadata_to_model,
    move_quantization_annotations_to_model,
)
from opshift.converter.ir_version.tensors import (
    add_initializers_as_inputs,
    densify_attributes,
    densify_initializers,
)
from opshift.registry.steps import Allow


class Lowering(NamedTuple):
    """Rewrite of a model without a feature of `ir_versions.yaml`.

    A feature without `replacement` and `apply` can only be dropped, by `drop` if `allow` contains the
    allowance. After a rewrite that moves nodes, the contents have to be collected again.
    """

    feature: str
    replacement: str
    apply: ModelRewrite | None
    allowance: Allow | None = None
    drop: ModelRewrite | None = None
    moves_nodes: bool = False


LOWERINGS: tuple[Lowering, ...] = (
    Lowering("device_configurations", "", None, "drop-devices", drop_device_configurations),
    Lowering("metadata", "metadata of the model", move_metadata_to_model, "drop-metadata", drop_metadata),
    Lowering("functions", "inlined nodes", inline_all_functions, moves_nodes=True),
    Lowering("overloads", "functions with unique names", rename_overloads),
    Lowering("function_values", "value_info of the main graph", move_function_value_info),
    Lowering("attribute_defaults", "attributes of the calls", write_default_attributes),
    Lowering("training", "", None, "drop-training", drop_training_info),
    Lowering("sparse_initializers", "dense initializers", densify_initializers),
    Lowering("sparse_attributes", "dense tensors", densify_attributes),
    Lowering(
        "quantization_annotations",
        "metadata of the model",
        move_quantization_annotations_to_model,
        "drop-metadata",
        drop_quantization_annotations,
    ),
    Lowering("standalone_initializers", "graph inputs", add_initializers_as_inputs),
)
"""Rewrites in the order of their application: newest first, except that inlining precedes the rewrites of
function features, which it makes unnecessary."""

FUNCTION_FEATURES = frozenset({"overloads", "function_values", "attribute_defaults"})
"""Features that a model without functions cannot have."""

"""Quantization annotations (IR version 5): the tensors with the scale and zero point of a value.

They are hints for quantization tools, and move to the model's metadata.
"""

from __future__ import annotations

from collections.abc import Iterator

from opshift.converter.ir.contents import Contents
from opshift.converter.ir.metadata import add_entry
from opshift.converter.ir.use import Use


def find(contents: Contents) -> Iterator[Use]:
    """Yield the graphs with annotations."""
    yield from (
        Use("quantization_annotations", path)
        for path, graph in contents.graphs
        if graph.quantization_annotation
    )


def move(contents: Contents) -> None:
    """Move every entry to the model's metadata, with keys like `graph, quantization of 'x': SCALE_TENSOR`."""
    props = contents.model.metadata_props
    used_keys = {entry.key for entry in props}
    for path, graph in contents.graphs:
        for annotation in graph.quantization_annotation:
            for entry in annotation.quant_parameter_tensor_names:
                key = f"{path}, quantization of {annotation.tensor_name!r}: {entry.key}"
                add_entry(props, used_keys, key, entry.value)
        graph.ClearField("quantization_annotation")


def drop(contents: Contents) -> None:
    """Remove all quantization annotations."""
    for _, graph in contents.graphs:
        graph.ClearField("quantization_annotation")

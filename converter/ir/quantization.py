"""Quantization annotations, from IR version 5 on: which tensors hold a tensor's scale and zero point.

They are advice to quantizing tools, and move to the model's metadata.
"""

from __future__ import annotations

from collections.abc import Iterator

from opshift.converter.ir.contents import Contents
from opshift.converter.ir.metadata import add_entry
from opshift.converter.ir.use import Use


def find(contents: Contents) -> Iterator[Use]:
    """The graphs with annotations."""
    yield from (
        Use("quantization_annotations", path)
        for path, graph in contents.graphs
        if graph.quantization_annotation
    )


def move(contents: Contents) -> None:
    """Move every entry to the model's metadata, as `graph, quantization of 'x': SCALE_TENSOR`."""
    props = contents.model.metadata_props
    taken = {each.key for each in props}
    for path, graph in contents.graphs:
        for annotation in graph.quantization_annotation:
            for entry in annotation.quant_parameter_tensor_names:
                key = f"{path}, quantization of {annotation.tensor_name!r}: {entry.key}"
                add_entry(props, taken, key, entry.value)
        graph.ClearField("quantization_annotation")


def drop(contents: Contents) -> None:
    """Take all of them out."""
    for _, graph in contents.graphs:
        graph.ClearField("quantization_annotation")

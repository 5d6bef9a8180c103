"""Categories of operators: the folders of their definitions in ONNX."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from opshift.adapters.core.adapter_table import built_in_adapters
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.registry.models import Operator
from opshift.registry.onnx_defs import onnx_defs

TITLES: Final[Mapping[str, str]] = {
    "controlflow": "Control flow",
    "generator": "Generators",
    "image": "Images",
    "math": "Mathematics",
    "nn": "Neural networks",
    "rnn": "Recurrent networks",
    "sequence": "Sequences",
    "tensor": "Tensors",
    "traditionalml": "Classical machine learning",
}
"""Titles of folders whose name is an abbreviation or has another number; others have their name as title."""

OTHER: Final = "Other operators"


@cache
def _folders() -> Mapping[str, str]:
    """Return the folder of each operator: that of its definition in ONNX, or else that of its adapters."""
    # opshift.adapters.ops.<folder>, and a module for each operator if the folder has many
    of_adapters = {
        f"{key.domain}.{key.op_type}": function.__module__.split(".")[3]
        for key, function in built_in_adapters().items()
    }
    return of_adapters | {name: folder for folder, names in onnx_defs().folders.items() for name in names}


def category_of(operator: Operator) -> str:
    """Return the title of the category; the operators of other domains than ONNX's are one category each."""
    if operator.domain.partition(".preview")[0] not in (DEFAULT_DOMAIN, "ai.onnx.ml"):
        return operator.domain
    folder = _folders().get(f"{operator.domain}.{operator.name}")
    return TITLES.get(folder, folder.replace("_", " ").capitalize()) if folder else OTHER

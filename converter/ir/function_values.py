"""Types of the values in functions, from IR version 10 on.

Before, onnx_ir and exporters put them into the main graph, under the names of the function and the value.
"""

from __future__ import annotations

from collections.abc import Iterator

from opshift.converter.ir.contents import Contents
from opshift.converter.ir.use import Use


def find(contents: Contents) -> Iterator[Use]:
    """The functions that state any."""
    for path, function in contents.functions:
        if getattr(function, "value_info", ()):
            yield Use("function_values", path)


def move(contents: Contents) -> None:
    """Move every type to the main graph's value_info, under the name `domain::function/value`."""
    values = contents.model.graph.value_info
    for _, function in contents.functions:
        for value in function.value_info:
            moved = values.add()
            moved.CopyFrom(value)
            moved.name = f"{function.domain}::{function.name}/{value.name}"
        function.ClearField("value_info")

"""Types of the values in functions (IR version 10).

In older versions, onnx_ir and exporters store them in the main graph, with the names of function and value.
"""

from __future__ import annotations

from collections.abc import Iterator

from opshift.converter.ir.contents import Contents
from opshift.converter.ir.use import Use


def find(contents: Contents) -> Iterator[Use]:
    """Yield the functions with declared types of values."""
    for path, function in contents.functions:
        if getattr(function, "value_info", ()):
            yield Use("function_values", path)


def move(contents: Contents) -> None:
    """Move every type to the main graph's value_info, with the name `domain::function/value`."""
    values = contents.model.graph.value_info
    for _, function in contents.functions:
        for value in function.value_info:
            moved = values.add()
            moved.CopyFrom(value)
            moved.name = f"{function.domain}::{function.name}/{value.name}"
        function.ClearField("value_info")

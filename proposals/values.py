"""Type check of attribute values from YAML files."""

from __future__ import annotations

from typing import Any

from opshift.registry.models import Attribute

_PYTHON_TYPES: dict[str, tuple[type, ...]] = {"FLOAT": (int, float), "INT": (int,), "STRING": (str,)}


def is_of(value: Any, declared: Attribute) -> bool:
    """Return whether a value has the type of an attribute.

    Only numbers, strings and lists of them can: graphs and tensors cannot be written in these files.
    """
    is_list = declared.type.endswith("S")
    if isinstance(value, list | tuple) != is_list:
        return False
    allowed = _PYTHON_TYPES.get(declared.type.removesuffix("S"), ())
    listed = value if is_list else (value,)
    # bool is a subclass of int in Python, but not an ONNX attribute type.
    return all(isinstance(each, allowed) and not isinstance(each, bool) for each in listed)

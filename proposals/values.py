"""Whether a value that is written in YAML is one of an attribute."""

from __future__ import annotations

from typing import Any

from opshift.registry.models import Attribute

_CLASSES: dict[str, tuple[type, ...]] = {"FLOAT": (int, float), "INT": (int,), "STRING": (str,)}


def is_of(value: Any, declared: Attribute) -> bool:
    """Whether a number, a text, or a list of them has the type of an attribute. No graph or tensor is one."""
    is_list = declared.type.endswith("S")
    if isinstance(value, list | tuple) != is_list:
        return False
    classes = _CLASSES.get(declared.type.removesuffix("S"), ())
    listed = value if is_list else (value,)
    return all(isinstance(each, classes) and not isinstance(each, bool) for each in listed)

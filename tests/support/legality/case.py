"""A rule, a model that keeps it, and a change that breaks it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import onnx
from onnx import TensorProto, helper, parser

from opshift.converter.legality.check import check
from opshift.registry.messages import ModelProto

Change = Callable[[Any], object]
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


class Case(NamedTuple):
    """One way to break a rule.

    Attributes:
        rule: the rule's name.
        sound: the text of a model, as `onnx.parser` reads it, or what makes one; it keeps the rule.
        change: what breaks the rule.
        what: what the change does, where a rule can be broken in several ways.
    """

    rule: str
    sound: str | Callable[[], onnx.ModelProto]
    change: Change
    what: str = ""

    @property
    def id(self) -> str:
        """How the test is called."""
        return f"{self.rule}: {self.what}" if self.what else self.rule

    def keeping(self) -> Any:
        """The model that keeps the rule."""
        made = parsed(self.sound) if isinstance(self.sound, str) else self.sound()
        return ModelProto.FromString(made.SerializeToString())

    def breaking(self) -> Any:
        """The model that breaks it."""
        model = self.keeping()
        self.change(model)
        return model


def parsed(text: str) -> onnx.ModelProto:
    """A model in ONNX's text syntax; without a head of IR version 10 and opset 21."""
    head = "" if text.lstrip().startswith("<") else '<ir_version: 10, opset_import: ["": 21]>\n'
    model: onnx.ModelProto = parser.parse_model(head + text)
    return model


def rules_broken(model: Any, **options: Any) -> set[str]:
    """The names of the rules that a model breaks."""
    return {each.rule for each in check(model, **options)}


def doing(*changes: Change) -> Change:
    """Several changes, one after the other."""

    def change(model: Any) -> None:
        for each in changes:
            each(model)

    return change


def setting(path: str, value: Any) -> Change:
    """Set a field: `graph.node[0].op_type`; a list replaces all elements, and `None` clears the field."""
    parent, _, name = path.rpartition(".")

    def change(model: Any) -> None:
        holder = at(model, parent)
        if value is None:
            holder.ClearField(name)
        elif isinstance(value, list):
            holder.ClearField(name)
            getattr(holder, name).extend(value)
        else:
            setattr(holder, name, value)

    return change


def adding(path: str, **fields: Any) -> Change:
    """Add a message to a repeated field."""
    return lambda model: at(model, path).add(**fields)


def repeating(path: str) -> Change:
    """Add a copy of the first message of a repeated field."""
    return lambda model: at(model, path).add().CopyFrom(at(model, path)[0])


def at(model: Any, path: str) -> Any:
    """What a path such as `graph.node[0].attribute[1]` leads to."""
    found = model
    for part in filter(None, path.split(".")):
        name, _, index = part.partition("[")
        found = getattr(found, name)
        if index:
            found = found[int(index.rstrip("]"))]
    return found


def value(name: str, kind: int = FLOAT, shape: list[int | str] | None = None) -> onnx.ValueInfoProto:
    """A ValueInfoProto."""
    made: onnx.ValueInfoProto = helper.make_tensor_value_info(name, kind, shape)
    return made

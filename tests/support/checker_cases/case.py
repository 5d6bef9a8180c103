"""A rule, a model that satisfies it, and a change that violates it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import onnx
from onnx import TensorProto, helper, parser

from opshift.checker.check import check
from opshift.model.messages import ModelProto

Change = Callable[[Any], object]
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


class Case(NamedTuple):
    """One way to violate a rule.

    Attributes:
        rule: the id of the rule.
        sound: a model that satisfies the rule: text for `onnx.parser`, or a function that builds the model.
        change: the change that violates the rule.
        what: a description of the change, for rules with several cases.
    """

    rule: str
    sound: str | Callable[[], onnx.ModelProto]
    change: Change
    what: str = ""

    @property
    def id(self) -> str:
        """The id of the test."""
        return f"{self.rule}: {self.what}" if self.what else self.rule

    def keeping(self) -> Any:
        """Return the model that satisfies the rule."""
        made = parse_text(self.sound) if isinstance(self.sound, str) else self.sound()
        return ModelProto.FromString(made.SerializeToString())

    def breaking(self) -> Any:
        """Return the model that violates the rule."""
        model = self.keeping()
        self.change(model)
        return model


def parse_text(text: str) -> onnx.ModelProto:
    """Parse a model in ONNX's text syntax; the default header has IR version 10 and opset 21."""
    header = "" if text.lstrip().startswith("<") else '<ir_version: 10, opset_import: ["": 21]>\n'
    model: onnx.ModelProto = parser.parse_model(header + text)
    return model


def violated_rules(model: Any, **options: Any) -> set[str]:
    """Return the ids of the rules that a model violates."""
    return {each.rule for each in check(model, **options)}


def apply_all(*changes: Change) -> Change:
    """Return a change that applies several changes in order."""

    def change(model: Any) -> None:
        for each in changes:
            each(model)

    return change


def set_field(path: str, value: Any) -> Change:
    """Return a change that sets a field; a list replaces all elements, and `None` clears the field."""
    parent, _, name = path.rpartition(".")

    def change(model: Any) -> None:
        holder = field_at(model, parent)
        if value is None:
            holder.ClearField(name)
        elif isinstance(value, list):
            holder.ClearField(name)
            getattr(holder, name).extend(value)
        else:
            setattr(holder, name, value)

    return change


def add_message(path: str, **fields: Any) -> Change:
    """Return a change that adds a message to a repeated field."""
    return lambda model: field_at(model, path).add(**fields)


def repeat_first(path: str) -> Change:
    """Return a change that adds a copy of the first message of a repeated field."""
    return lambda model: field_at(model, path).add().CopyFrom(field_at(model, path)[0])


def field_at(model: Any, path: str) -> Any:
    """Return the message or field at a path such as `graph.node[0].attribute[1]`."""
    found = model
    for part in filter(None, path.split(".")):
        name, _, index = part.partition("[")
        found = getattr(found, name)
        if index:
            found = found[int(index.rstrip("]"))]
    return found


def value(name: str, element_type: int = FLOAT, shape: list[int | str] | None = None) -> onnx.ValueInfoProto:
    """Return a ValueInfoProto."""
    made: onnx.ValueInfoProto = helper.make_tensor_value_info(name, element_type, shape)
    return made

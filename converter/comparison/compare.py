"""Comparison of two versions of a model."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, get_args

from opshift.converter.comparison.contents import content_changes
from opshift.converter.comparison.names import name_changes
from opshift.converter.comparison.result import Change, Comparison
from opshift.converter.comparison.signature import Role, Value, values_of
from opshift.converter.comparison.symbols import symbol_changes
from opshift.converter.comparison.values import value_changes
from opshift.converter.convert import model_of
from opshift.converter.errors import InvalidModel


def compare(old: Any, new: Any) -> Comparison:
    """Compare two versions of a model, and determine the required increment of `model_version`.

    Meanings of inputs and outputs are compared if both models declare them: denotations of types, and
    metadata of images. External data files are compared if both models are paths.

    Args:
        old: a ModelProto of opshift or `onnx`, serialized bytes, or a path.
        new: a model in one of the same forms.

    Returns:
        All changes, the most severe first.

    Raises:
        InvalidModel: one of them is not a model.
    """
    old_model, new_model = (_model(each) for each in (old, new))
    changes: list[Change] = []
    shared: list[tuple[Value, Value]] = []
    for role in get_args(Role):
        old_values, new_values = values_of(old_model.graph, role), values_of(new_model.graph, role)
        changes += name_changes(role, old_values, new_values)
        shared += [(value, new_values[name]) for name, value in old_values.items() if name in new_values]
    for pair in shared:
        changes += value_changes(*pair)
    changes += symbol_changes(shared)
    changes += content_changes(old_model, new_model, (_folder(old), _folder(new)))
    changes.sort(key=lambda change: -change.rise)
    return Comparison(tuple(changes), old_model.model_version, new_model.model_version)


def _model(given: Any) -> Any:
    model, _ = model_of(given)
    if not model.HasField("graph"):
        place = str(given) if isinstance(given, str | os.PathLike) else ""
        remedy = "check that it is the right file"
        raise InvalidModel("this is not a model: it has no graph", place=place, remedy=remedy)
    return model


def _folder(given: Any) -> Path | None:
    return Path(given).parent if isinstance(given, str | os.PathLike) else None

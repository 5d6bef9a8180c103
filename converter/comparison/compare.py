"""Compare two versions of a model."""

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
    """What changed from one version of a model to the next, and by how much `model_version` has to rise.

    What inputs and outputs mean is compared as far as the models state it: by the denotations of their types
    and by the metadata on images. Weights in files of their own are compared if both models are paths.

    Args:
        old: a ModelProto (the project's or `onnx`'s), the bytes of one, or a path.
        new: likewise.

    Raises:
        InvalidModel: one of them is no model.
    """
    before, after = (_model(each) for each in (old, new))
    changes: list[Change] = []
    shared: list[tuple[Value, Value]] = []
    for role in get_args(Role):
        values, others = values_of(before.graph, role), values_of(after.graph, role)
        changes += name_changes(role, values, others)
        shared += [(value, others[name]) for name, value in values.items() if name in others]
    for pair in shared:
        changes += value_changes(*pair)
    changes += symbol_changes(shared)
    changes += content_changes(before, after, (_folder(old), _folder(new)))
    changes.sort(key=lambda change: -change.rise)
    return Comparison(tuple(changes), before.model_version, after.model_version)


def _model(given: Any) -> Any:
    model, _ = model_of(given)
    if not model.HasField("graph"):
        place = str(given) if isinstance(given, str | os.PathLike) else ""
        remedy = "check that it is the right one"
        raise InvalidModel("this is not a model: it has no graph", place=place, remedy=remedy)
    return model


def _folder(given: Any) -> Path | None:
    return Path(given).parent if isinstance(given, str | os.PathLike) else None

"""Check a model against the rules of the specification."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from opshift.converter.collector import collector_paused
from opshift.converter.convert import model_of
from opshift.converter.errors import InvalidModel
from opshift.converter.files import read_bytes
from opshift.converter.legality.containers import Model, Source
from opshift.converter.legality.findings import Finding, IllegalModel, Level
from opshift.converter.legality.walk import Walk
from opshift.registry.catalogue import Registry, default_registry

NEWEST_FIELD = "configuration"
"""The field that ModelProto got last; a class that lacks it does not show all that a model holds."""
READ = (str, os.PathLike, bytes, bytearray, memoryview)


@collector_paused
def check(
    model: Any, *, registry: Registry | None = None, folder: str | os.PathLike[str] | None = None
) -> tuple[Finding, ...]:
    """Everything in a model that breaks a rule of ONNX's IR specification, or of its operators' definitions.

    It takes time in proportion to the number of nodes. Of weights nothing is read but their length.

    Args:
        model: a ModelProto (the project's or `onnx`'s), the bytes of one, or a path. It is left as it is.
        registry: the definitions to go by, if not the project's own.
        folder: where the model's external data are; for a path, by default the folder of the file. Without
            one they are not looked for.

    Returns:
        The findings, in the order of the model; none of level `error` in a legal model.

    Raises:
        InvalidModel: what is given is neither a model, nor bytes, nor a path.
    """
    walk = Walk()
    try:
        proto, _ = model_of(model)
    except InvalidModel as error:
        if not isinstance(model, READ):
            raise
        walk.judge(Source(str(error.place) or "model", error.reason))
        return tuple(walk.findings)
    if not hasattr(proto, NEWEST_FIELD):
        proto = read_bytes(proto.SerializeToString())
    if folder is None and isinstance(model, str | os.PathLike):
        folder = Path(model).parent
    try:
        walk.run(Model(proto, registry or default_registry(), Path(folder) if folder is not None else None))
    except UnicodeDecodeError:
        walk.judge(Source("model", is_text=False))
    return tuple(walk.findings)


def require_legal(model: Any, registry: Registry | None = None, when: str = "") -> None:
    """Check that a model breaks no rule of level `error`.

    Raises:
        IllegalModel: it does; the error lists all of them, and says `when` that was found.
    """
    errors = [each for each in check(model, registry=registry) if each.level is Level.ERROR]
    if errors:
        raise IllegalModel(errors, when)

"""Check a model against the rules of the specification."""

import os
from pathlib import Path
from typing import Any

from opshift.checker.checked_model import CheckedModel, ModelSource
from opshift.checker.findings import Finding, IllegalModel, Level
from opshift.checker.walk import Walk
from opshift.model.binary_files import is_readable
from opshift.model.errors import InvalidModel
from opshift.model.files import BYTES_TYPES, gc_paused, model_of, read_bytes, reading_onnx_ir
from opshift.model.graphs import require_limited_lists
from opshift.model.locations import folder_of
from opshift.registry.registry import Registry, default_registry

NEWEST_FIELD = "configuration"
"""Most recent field of ModelProto; in a class without it, newer parts of a model are unknown fields."""


@reading_onnx_ir
@gc_paused
def check(
    model: Any, *, registry: Registry | None = None, folder: str | os.PathLike[str] | None = None
) -> tuple[Finding, ...]:
    """Check a model against the rules of ONNX's IR specification and the definitions of its operators.

    The time is proportional to the number of nodes. Elements of weights are not read, except the indices
    of sparse tensors, strings, the unused bits of 6-bit types, and external data with a checksum.

    Args:
        model: a ModelProto (the project's or `onnx`'s), a serialized one, a path, or a file object. It is not
            modified.
        registry: the operator definitions; the project's own by default.
        folder: the folder of the model's external data; for a path, by default the folder of the file.
            Without a folder, external data files are not checked.

    Returns:
        The findings, in the order of the model; a legal model has none of level `error`.

    Raises:
        InvalidModel: `model` is not a model, bytes, a path or a file object.
    """
    walk = Walk()
    try:
        proto, _ = model_of(model)
    except InvalidModel as error:
        if not (isinstance(model, (str, os.PathLike, *BYTES_TYPES)) or is_readable(model)):
            raise
        walk.check(ModelSource(str(error.place) or "model", error.reason, error.remedy))
        return tuple(walk.findings)
    if not hasattr(proto, NEWEST_FIELD):
        # The rules access fields that message classes of an older `onnx` lack: parse with the project's own.
        proto = read_bytes(proto.SerializeToString())
    data_folder = Path(folder) if folder is not None else folder_of(model)
    try:
        require_limited_lists(proto, "model")
        walk.run(CheckedModel(proto, registry or default_registry(), data_folder))
    except (UnicodeDecodeError, TypeError, AttributeError, InvalidModel) as error:
        # Some protobuf releases raise when a string field that is not UTF-8 is read, others return bytes.
        if isinstance(error, UnicodeDecodeError) or not _is_text(proto):
            walk.check(ModelSource("model", is_text=False))
        elif isinstance(error, InvalidModel):
            walk.check(ModelSource(str(error.place) or "model", error.reason, error.remedy))
        else:
            raise
    return tuple(walk.findings)


def _is_text(message: Any) -> bool:
    """Return whether all string fields of a message, and of those in it, are UTF-8 text."""
    for field, value in message.ListFields():
        for each in value if hasattr(value, "extend") else (value,):
            if hasattr(each, "ListFields"):
                if not _is_text(each):
                    return False
            elif field.type == field.TYPE_STRING and isinstance(each, bytes):
                return False
    return True


def require_legal(model: Any, registry: Registry | None = None, when: str = "") -> None:
    """Raise IllegalModel if `check` finds errors; `when`, the stage of the check, begins the message."""
    errors = [finding for finding in check(model, registry=registry) if finding.level is Level.ERROR]
    if errors:
        raise IllegalModel(errors, when)

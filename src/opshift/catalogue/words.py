"""Texts for types and their changes, classes of changes, kinds of conversions and categories of operators."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

from opshift.adapters.core.adapter_table import built_in_adapters
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.registry.changes.classes import ChangeClass
from opshift.registry.changes.diff import Change
from opshift.registry.models import Operator
from opshift.registry.onnx_defs import onnx_defs

if TYPE_CHECKING:
    from opshift.registry.type_sets import TypeSets

CHANGE_LABELS: Final[Mapping[ChangeClass, str]] = {
    ChangeClass.DOCUMENTATION: "same meaning",
    ChangeClass.WIDENING: "accepts more",
    ChangeClass.ADDS_BEHAVIOUR: "new features",
    ChangeClass.RE_ENCODES: "written differently",
    ChangeClass.CHANGES_DEFAULT: "new default",
    ChangeClass.NARROWS: "accepts less",
    ChangeClass.INCOMPATIBLE: "not compatible",
    ChangeClass.REMOVAL: "deprecated",
}

METHOD_LABELS: Final[Mapping[str, str]] = {
    "derived": "unchanged",
    "compatible": "unchanged",
    "declared": "rewritten",
    "adapter": "rewritten",
    "refused": "no equivalent",
}
"""Labels of the keys of `history.METHODS`."""

CHANGE_SUBJECTS: Final[Mapping[str, str]] = {
    "attribute absent": "meaning if absent",
    "attribute default": "default",
    "attribute type": "type",
    "axes": "range of axes",
    "body": "function body",
    "bridge": "types in which runtimes may compute",
    "has function": "function body",
    "shape": "rule for shapes",
    "output type source": "source of the type",
}
"""Nouns for kinds of changes; a key is a `Change.kind` with spaces instead of underscores."""


def change_subject(kind: str) -> str:
    """Return the changed part, such as `default` for `attribute_default`; empty for an added attribute."""
    text = kind.replace("_", " ")
    if text in CHANGE_SUBJECTS:
        return CHANGE_SUBJECTS[text]
    return text.partition(" ")[2].replace("added", "").replace("removed", "").replace("option", "").strip()


TITLES: Final[Mapping[str, str]] = {
    "controlflow": "Control flow",
    "generator": "Generators",
    "image": "Images",
    "math": "Mathematics",
    "nn": "Neural networks",
    "rnn": "Recurrent networks",
    "sequence": "Sequences",
    "tensor": "Tensors",
    "traditionalml": "Classical machine learning",
}
"""Category titles by folder; the title of any other folder is its name."""

OTHER: Final = "Other operators"


@cache
def _folders() -> Mapping[str, str]:
    """Return the folder with the definition of each operator in ONNX's repository, or with its adapters."""
    # Modules are named opshift.adapters.ops.<folder> or opshift.adapters.ops.<folder>.<module>.
    of_adapters = {
        f"{key.domain}.{key.op_type}": function.__module__.split(".")[3]
        for key, function in built_in_adapters().items()
    }
    return of_adapters | {name: folder for folder, names in onnx_defs().folders.items() for name in names}


def category_of(operator: Operator) -> str:
    """Return the title of an operator's category; each domain outside ONNX is a single category."""
    if operator.domain.partition(".preview")[0] not in (DEFAULT_DOMAIN, "ai.onnx.ml"):
        return operator.domain
    folder = _folders().get(f"{operator.domain}.{operator.name}")
    return TITLES.get(folder, folder.replace("_", " ").capitalize()) if folder else OTHER


_WRAPPED = re.compile(r"((?:\w+\()*)([^()]*)(\)*)")

MAX_PLAIN_TYPES = 4
"""Maximum number of types that `summarize_types` lists without their number and the name of a set."""


def format_types(types: Iterable[str]) -> str:
    """Join types and share brackets, as in `seq(tensor(float)), tensor(double, float)`."""
    kinds: dict[tuple[str, str], list[str]] = {}
    for text in sorted(types):
        match = _WRAPPED.fullmatch(text)
        opening, element, closing = match.groups() if match else ("", text, "")
        kinds.setdefault((opening, closing), []).append(element)
    return ", ".join(f"{opening}{', '.join(each)}{closing}" for (opening, closing), each in kinds.items())


def summarize_types(types: tuple[str, ...], sets: TypeSets) -> str:
    """Join types; for more than `MAX_PLAIN_TYPES`, begin with their number and the name of any equal set."""
    if len(types) <= MAX_PLAIN_TYPES:
        return format_types(types)
    name = next((name for name in sets.names() if sets.expand(name) == tuple(sorted(types))), None)
    return f"{len(types)} types{f', {name}' if name else ''}: {format_types(types)}"


def change_text(change: Change) -> str:
    """Return a change as one line; a change of types lists only the added and removed types.

    Example: `input types: X: also tensor(bfloat16)`.
    """
    if not change.kind.endswith("_types"):
        return str(change)
    types = types_change_text(change.new - change.old, change.old - change.new)
    return f"{change.kind.replace('_', ' ')}: {change.subject}: {types}"


def types_change_text(added: Iterable[str], removed: Iterable[str], verb: str = "") -> str:
    """Return a change of types, such as `also tensor(double), no longer tensor(float)`."""
    parts = [f"also {verb}{format_types(added)}"] if added else []
    parts += [f"no longer {verb}{format_types(removed)}"] if removed else []
    return ", ".join(parts)

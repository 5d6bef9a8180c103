"""Rules for the versions of an operator."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from opshift.model.message_text import similar_names
from opshift.registry.definition_files import RELEASES
from opshift.registry.lint.rule_table import Keys, Problem, nearest, requirement, rule
from opshift.registry.models import Operator
from opshift.registry.shapes.rule_table import TABLE

requirement(
    "version.opset",
    "A version of a domain of ONNX belongs to the opset of a release.",
    f"add the release to {RELEASES}, with `released: false` until it is published",
)
requirement(
    "text.missing",
    "If a version describes a parameter, it and all later versions describe each of theirs.",
    "describe the operator and all its parameters in `descriptions`",
)
requirement(
    "text.unknown",
    "Texts describe inputs, outputs, attributes and type variables of the version.",
    "correct the name, or remove the text",
)


@rule("version.order", "sort the versions by `since_version`, oldest first, each once")
def version_order(operator: Operator) -> Iterator[Problem]:
    """Versions ascend."""
    numbers = [version.since_version for version in operator.versions]
    for position, (old, new) in enumerate(pairwise(numbers), 1):
        if old >= new:
            reason = f"versions must ascend, each once: {numbers}"
            yield Problem(reason, ("versions", position, "since_version"))


@rule("version.removal", "remove the operator in its last version, at a later opset")
def version_removal(operator: Operator) -> Iterator[Problem]:
    """Only the last version is removed, at an opset after its own."""
    for position, version in enumerate(operator.versions):
        if version.removal is None:
            continue
        if position < len(operator.versions) - 1:
            yield Problem("a later version follows the removal", ("versions", position, "removal"))
        elif version.removal.removed_in <= version.since_version:
            reason = (
                f"version {version.since_version} cannot be removed in opset {version.removal.removed_in}"
            )
            yield Problem(reason, ("versions", position, "removal", "removed_in"))


@rule("shape.unknown", "name a rule of registry/shapes")
def shape_unknown(operator: Operator) -> Iterator[Problem]:
    """`shape` names a shape rule, or one that a file registers later, whose name resembles no other."""
    for keys, name in unknown_shapes(operator):
        if not is_private_shape(name):
            remedy = nearest(name, TABLE.registered)
            yield Problem(f"there is no shape rule {name!r}", keys, remedy)


def unknown_shapes(operator: Operator) -> Iterator[tuple[Keys, str]]:
    """Yield the keys and names of shape rules that are not registered."""
    found: dict[str, Keys] = {}
    for position, version in enumerate(operator.versions):
        name = version.shape
        # a look-up, because listing the modules with rules takes longer than all other rules
        if name and name not in TABLE.registered and name not in TABLE.load():
            found.setdefault(name, ("shape",) if name == operator.shape else ("versions", position, "shape"))
    return ((keys, name) for name, keys in found.items())


def is_private_shape(name: str) -> bool:
    """Return whether an unknown shape rule may be registered later: it resembles no other."""
    return not similar_names(name, TABLE.registered)

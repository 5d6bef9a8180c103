"""Lint rules for operators and their versions; only `opshift lint` applies the rules for `TreeOperator`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from itertools import pairwise
from typing import NamedTuple

from opshift.model.message_text import similar_names
from opshift.registry.definition_files import RELEASES
from opshift.registry.lint.rule_table import Keys, LintProblem, nearest, requirement, rule
from opshift.registry.models import Operator
from opshift.registry.requirements import InvalidRequirement, parse_requirement
from opshift.registry.shapes.rule_table import TABLE
from opshift.registry.steps import RenameOp


class TreeOperator(NamedTuple):
    """Argument of rules: an operator, a function for names of operators, and the registered adapters."""

    operator: Operator
    names: Callable[[str], Collection[str]]
    """Returns the names of the operators of a domain."""
    adapters: Collection[tuple[str, str, int, int]]
    """Domain, operator name, source version and target version of each adapter."""


class Declaration(NamedTuple):
    """A declared conversion: its path in the file, source and target version, and action."""

    keys: Keys
    source: int
    target: int
    action: object


def _declared_conversions(operator: Operator) -> Iterator[Declaration]:
    first = operator.versions[0]
    yield Declaration(("versions", 0, "before"), first.since_version, first.since_version - 1, first.before)
    for position, (old, new) in enumerate(pairwise(operator.versions), 1):
        if new.step is not None:
            keys: Keys = ("versions", position, "step")
            yield Declaration((*keys, "up"), old.since_version, new.since_version, new.step.up)
            yield Declaration((*keys, "down"), new.since_version, old.since_version, new.step.down)
    last = operator.versions[-1]
    if last.removal is not None:
        keys = ("versions", len(operator.versions) - 1, "removal", "up")
        yield Declaration(keys, last.since_version, last.removal.removed_in, last.removal.up)


@rule("shape.private", "correct the name, or run the file that registers it with --adapters")
def shape_private(subject: TreeOperator) -> Iterator[LintProblem]:
    """Every private shape rule is registered."""
    for keys, name in unknown_shapes(subject.operator):
        if is_private_shape(name):
            yield LintProblem(f"no shape rule {name!r} is registered", keys)


@rule("step.adapter", "write it with @adapter, and run its file with --adapters")
def step_adapter(subject: TreeOperator) -> Iterator[LintProblem]:
    """Every declared adapter is registered."""
    domain, name = subject.operator.domain, subject.operator.name
    declared = {
        each.keys: (each.source, each.target)
        for each in _declared_conversions(subject.operator)
        if each.action == "adapter"
    }
    if subject.operator.versions[0].before != "adapter":
        for position, version in enumerate(subject.operator.versions):
            if version.has_context_dependent_function:
                keys: Keys = ("versions", position, "has_context_dependent_function")
                declared[keys] = (version.since_version, version.since_version)
    for keys, (source, target) in declared.items():
        if (domain, name, source, target) not in subject.adapters:
            yield LintProblem(f"no adapter of {domain}.{name} from {source} to {target} is registered", keys)


@rule("step.undeclared", "declare `adapter` for the step, or remove the adapter")
def step_undeclared(subject: TreeOperator) -> Iterator[LintProblem]:
    """Every registered adapter of an operator is declared."""
    operator = subject.operator
    declared = {
        (each.source, each.target) for each in _declared_conversions(operator) if each.action == "adapter"
    }
    # Adapters from a version to the same version build the function body, and need no declaration.
    declared |= {(each.since_version, each.since_version) for each in operator.versions}
    for domain, name, source, target in subject.adapters:
        if (domain, name) == (operator.domain, operator.name) and (source, target) not in declared:
            yield LintProblem(
                f"an adapter from {source} to {target} is registered, but not declared", ("versions",)
            )


@rule("reference.unknown", "correct the name, or define the operator")
def reference_unknown(subject: TreeOperator) -> Iterator[LintProblem]:
    """The operators in `replaced_by`, `rename_op` and function bodies exist."""
    domain = subject.operator.domain
    found: list[tuple[Keys, str, str]] = []
    for position, version in enumerate(subject.operator.versions):
        keys: Keys = ("versions", position)
        for key, marker in (("deprecation", version.deprecation), ("removal", version.removal)):
            names = marker.replacements if marker else ()
            for name in names:
                other, _, op_type = name.rpartition(".")
                found.append(((*keys, key, "replaced_by"), other or domain, op_type))
        for index, node in enumerate(version.body.nodes if version.body else ()):
            found.append(((*keys, "body", "nodes", index, "op_type"), node.domain, node.op_type))
    for each in _declared_conversions(subject.operator):
        for index, verb in enumerate(each.action if isinstance(each.action, tuple) else ()):
            if isinstance(verb, RenameOp):
                found.append(((*each.keys, index), domain, verb.op_type))
    for keys, other, name in found:
        known = subject.names(other)
        if name not in known:
            yield LintProblem(
                f"{other} has no operator {name!r}", keys, nearest(name, known) if known else ""
            )


@rule("name.case", "rename one of the operators")
def name_case(subject: TreeOperator) -> Iterator[LintProblem]:
    """Names of operators differ in more than case: some file systems ignore case."""
    name = subject.operator.name
    for other in subject.names(subject.operator.domain):
        if other != name and other.lower() == name.lower():
            yield LintProblem(f"{name} differs from {other} only in case", ("name",))


requirement(
    "version.opset",
    "A version of a domain of ONNX belongs to the opset of a release.",
    f"add the release to {RELEASES}, with `released: false` until it is published",
)
requirement(
    "text.missing",
    "If a version describes a parameter, this and all later versions describe all parameters.",
    "describe the operator and all its parameters in `descriptions`",
)
requirement(
    "text.unknown",
    "Texts describe inputs, outputs, attributes and type variables of the version.",
    "correct the name, or remove the text",
)


@rule("version.order", "sort the versions by `since_version`, oldest first, each once")
def version_order(operator: Operator) -> Iterator[LintProblem]:
    """`since_version` increases from each version to the next."""
    numbers = [version.since_version for version in operator.versions]
    for position, (old, new) in enumerate(pairwise(numbers), 1):
        if old >= new:
            reason = f"`since_version` must increase from version to version, got {numbers}"
            yield LintProblem(reason, ("versions", position, "since_version"))


@rule("version.removal", "remove the operator in its last version, at a later opset")
def version_removal(operator: Operator) -> Iterator[LintProblem]:
    """Only the last version is removed, at a later opset."""
    for position, version in enumerate(operator.versions):
        if version.removal is None:
            continue
        if position < len(operator.versions) - 1:
            yield LintProblem("a later version follows the removal", ("versions", position, "removal"))
        elif version.removal.removed_in <= version.since_version:
            reason = (
                f"version {version.since_version} cannot be removed in opset {version.removal.removed_in}"
            )
            yield LintProblem(reason, ("versions", position, "removal", "removed_in"))


@rule("shape.unknown", "name a rule of registry/shapes")
def shape_unknown(operator: Operator) -> Iterator[LintProblem]:
    """`shape` names a shape rule, or a private rule with a name that resembles no registered rule."""
    for keys, name in unknown_shapes(operator):
        if not is_private_shape(name):
            remedy = nearest(name, TABLE.registered)
            yield LintProblem(f"there is no shape rule {name!r}", keys, remedy)


def unknown_shapes(operator: Operator) -> Iterator[tuple[Keys, str]]:
    """Yield the path in the file and the name of each shape rule that is not registered."""
    found: dict[str, Keys] = {}
    for position, version in enumerate(operator.versions):
        name = version.shape
        # `registered` is read first, because `load` lists modules, which takes longer than all other rules.
        if name and name not in TABLE.registered and name not in TABLE.load():
            found.setdefault(name, ("shape",) if name == operator.shape else ("versions", position, "shape"))
    return ((keys, name) for name, keys in found.items())


def is_private_shape(name: str) -> bool:
    """Return whether an unknown shape rule may be a private one: no registered rule has a similar name."""
    return not similar_names(name, TABLE.registered)


@rule("requires.invalid", "write a comparison, such as `rank(X) >= 3`")
def requirement_syntax(operator: Operator) -> Iterator[LintProblem]:
    """Requirements are expressions about attributes and inputs.

    A name that no version has is not a mistake: an operator set may contain only some of the versions.
    """
    texts = (*operator.requires, *(each for version in operator.versions for each in version.requires))
    for text in dict.fromkeys(texts):
        try:
            parse_requirement(text)
        except InvalidRequirement as error:
            yield LintProblem(f"{text!r}: {error}", ("requires",))

"""Lint rules for the files of runtimes, and the function that applies them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from opshift.model.operator_ids import canonical_domain
from opshift.registry.errors import DefinitionFinding
from opshift.registry.lint.rule_table import Keys, LintProblem, nearest, rule, rules_for
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.registry import Registry
from opshift.registry.requirements import parse_requirement
from opshift.registry.runtimes.restrictions import NodePattern, Restriction, pattern_nodes
from opshift.registry.runtimes.runtime import Kernel, Runtime, versions_text
from opshift.registry.yaml_files import MAX_FINDINGS, Positions


class TreeRuntime(NamedTuple):
    """Argument of the rules: a runtime, and functions that look up operator definitions."""

    runtime: Runtime
    names: Callable[[str], Collection[str]]
    """Returns the names of the operators of a domain; returns none for an unknown domain."""
    operator: Callable[[str, str], Operator | None]
    """Returns the operator with a name and a domain, or `None`."""
    is_open: Callable[[str], bool]
    """Returns whether a domain is open: models may use its operators without a definition."""


@rule("runtime.operator", "correct it, or add `nonstandard: true` to its kernels")
def runtime_operator(subject: TreeRuntime) -> Iterator[LintProblem]:
    """The operator, versions and type variables of a kernel exist, unless the kernel is nonstandard."""
    runtime = subject.runtime
    for key, kernels in runtime.operators.items():
        domain, _, name = key.rpartition(".")
        if domain not in runtime.opsets:
            yield LintProblem(f"{key}: `opsets` has no domain {domain!r}", ("operators", key), ADD_DOMAIN)
        elif not subject.is_open(domain):  # the operators of an open domain differ between releases
            operator = subject.operator(name, domain)
            for position, kernel in enumerate(kernels):
                keys: Keys = ("operators", key, position)
                if operator is not None and not kernel.nonstandard:
                    yield from _kernel_problems(kernel, operator, keys)
                elif not kernel.nonstandard:
                    remedy = nearest(name, subject.names(domain))
                    yield LintProblem(f"{domain} has no operator {name!r}", keys, remedy)


ADD_DOMAIN = "write the operator as ai.onnx.Add, and add its domain to `opsets`"


def _kernel_problems(kernel: Kernel, operator: Operator, keys: Keys) -> Iterator[LintProblem]:
    versions = [each for each in operator.versions if kernel.implements(each.since_version)]
    if not versions:
        reason = f"{operator.name} has no version {versions_text(kernel.versions)}"
        yield LintProblem(reason, (*keys, "versions"))
    for version in versions:
        allowed = _type_keys(version)
        for name in kernel.types.keys() - allowed:
            reason = f"{version.id} has no type variable or parameter {name!r}"
            yield LintProblem(reason, (*keys, "types", name), nearest(name, allowed))


@rule("runtime.note", "write the operator as ai.onnx.Add, and the version as ai.onnx.Add:14")
def runtime_note(subject: TreeRuntime) -> Iterator[LintProblem]:
    """Operators in `restrictions` and other keys, and operator versions in `wrong`, exist."""
    runtime = subject.runtime
    notes: Mapping[str, Iterable[str]] = {
        "restrictions": runtime.restrictions,
        "slow_kernels": runtime.slow_kernels,
        "wrong": runtime.wrong,
    }
    for key, texts in notes.items():
        for text in texts:
            is_internal = key == "restrictions" and text in runtime.internal_operators
            if not is_internal and not _exists(text, subject, with_version=key == "wrong"):
                noun = "an operator version" if key == "wrong" else "an operator"
                yield LintProblem(f"{text} is not {noun} of a domain in `opsets`", (key, text))
    lists = {
        "folds": runtime.folds,
        "needs_names": runtime.needs_names,
        "refuses_sizes_after": runtime.refuses_sizes_after,
        "unfolded": runtime.unfolded,
        "unsized": runtime.unsized,
    }
    for key, names in lists.items():
        for position, text in enumerate(names):
            is_domain = key == "folds" and text in runtime.opsets
            has_version = key == "unsized" and ":" in text
            if not is_domain and not _exists(text, subject, with_version=has_version):
                yield LintProblem(f"{text} is not an operator of a domain in `opsets`", (key, position))


@rule("runtime.condition", "use names that the definition of the operator declares")
def runtime_condition(subject: TreeRuntime) -> Iterator[LintProblem]:
    """Names in restrictions exist: attributes, parameters, type variables and operators."""
    runtime = subject.runtime
    op_types = {name for domain in runtime.opsets for name in subject.names(domain)}
    # add operators with kernels, because an open domain may not define them
    op_types.update(key.rpartition(".")[2] for key in runtime.operators)
    for section, entries in (("restrictions", runtime.restrictions), ("wrong", runtime.wrong)):
        for key, restrictions in entries.items():
            domain, _, name = key.partition(":")[0].rpartition(".")
            operator = subject.operator(name, domain)
            # a restriction that is a string has no conditions
            if operator is not None and not isinstance(restrictions, str):
                for position, restriction in enumerate(restrictions):
                    versions = [
                        each for each in operator.versions if restriction.concerns(each.since_version)
                    ]
                    for reason, remedy in _unknown_names(key, restriction, versions, op_types):
                        yield LintProblem(reason, (section, key, position), remedy)


def _unknown_names(
    key: str, restriction: Restriction, versions: Iterable[OperatorVersion], op_types: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield a reason and a remedy for each problem in the conditions of a restriction.

    Problems are names that no version in `versions` defines, operators in `beside`, `computed_by` and
    `depends_on` that are not in `op_types`, and wrong patterns.
    """
    attributes = {name for each in versions for name in each.attributes}
    parameters = {name for each in versions for name in _type_keys(each)}
    for condition in filter(None, (restriction.when, restriction.unless)):
        producers = (*condition.computed_by.values(), *condition.depends_on.values())
        operators = chain(condition.beside, *producers)
        for unknown in (each for each in operators if each not in op_types):
            yield f"no domain in `opsets` has an operator {unknown!r}", nearest(unknown, sorted(op_types))
        for part in condition.parts:
            names = getattr(condition, part)
            if part in ("opsets", "beside"):
                continue
            if part == "patterns":
                yield from _wrong_patterns(key, condition.patterns)
                continue
            if part == "holds":
                read = {name for text in condition.holds for name in parse_requirement(text).names}
                known = attributes | parameters
                for unknown in (each for each in read if each not in known):
                    yield f"{key} has no attribute or parameter {unknown!r}", nearest(unknown, known)
                continue
            graphs = ("captures", "captures_outputs", "diverging", "returned", "unread", "untyped")
            is_attribute = part in ("attributes", "stated", *graphs)
            known = attributes if is_attribute else parameters
            noun = "attribute" if is_attribute else "parameter or type variable"
            for unknown in (each for each in names if each not in known):
                yield f"{key} has no {noun} {unknown!r}", nearest(unknown, known)


def _wrong_patterns(key: str, patterns: Iterable[NodePattern]) -> Iterator[tuple[str, str]]:
    """Yield a reason and a remedy for each pattern without a node of `key`, and each unknown value name."""
    for each in patterns:
        *inner, last = nodes = pattern_nodes(each.nodes)
        own = next((node for node in inner if each.node in node.outputs), None) if each.node else last
        if own is None or f"{canonical_domain(own.domain)}.{own.op_type}" != key.partition(":")[0]:
            yield (
                f"pattern {each.nodes!r} has no node of {key}",
                "write it last, or name its output in `node`",
            )
        computed = {name for node in inner for name in node.outputs}
        fused = [node for text in each.fused for node in pattern_nodes(text)]
        read = {name for node in (*nodes, *fused) for name in node.inputs} - computed
        for names, known in (
            ((*each.shared, *each.outputs), computed),
            ((*each.kept, *each.types), computed | read),
            ((*each.scalars, *each.ranks), read),
        ):
            for unknown in (name for name in names if name not in known):
                yield f"pattern {each.nodes!r} has no value {unknown!r}", nearest(unknown, sorted(known))


def _type_keys(version: OperatorVersion) -> list[str]:
    return [*version.type_constraints, *(each.name for each in (*version.inputs, *version.outputs))]


def _exists(text: str, subject: TreeRuntime, *, with_version: bool) -> bool:
    """Return whether a text names a known operator or, if `with_version`, a known operator version.

    The domain must be in `opsets`. An operator without a definition is known if its domain is open, or if the
    runtime has kernels for it.
    """
    name, colon, version = text.partition(":")
    domain, _, op_type = name.rpartition(".")
    if domain not in subject.runtime.opsets or bool(colon) != with_version:
        return False
    operator = subject.operator(op_type, domain)
    if operator is None:
        return subject.is_open(domain) or name in subject.runtime.operators
    return not with_version or version in [str(each.since_version) for each in operator.versions]


def runtime_findings(runtime: Runtime, path: Path, registry: Registry) -> list[DefinitionFinding]:
    """Return the violations of lint rules by the file of a runtime, at most `MAX_FINDINGS`."""
    subject = TreeRuntime(runtime, registry.names, registry.operator, registry.is_open)
    every = ((rule.id, each) for rule in rules_for(TreeRuntime) for each in rule.check(subject))
    problems = list(islice(every, MAX_FINDINGS))
    if not problems:
        return []
    place = Positions(path).locate
    return [
        DefinitionFinding.of_rule(rule, place(keys), reason, remedy)
        for rule, (reason, keys, remedy) in problems
    ]

"""Rules for the files of runtimes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from opshift.registry.lint.rule_table import Keys, Problem, nearest, rule
from opshift.registry.models import Operator
from opshift.registry.runtimes.runtime import Kernel, Runtime, versions_text


class TreeRuntime(NamedTuple):
    """A runtime with the definitions of operators."""

    runtime: Runtime
    names: Callable[[str], Collection[str]]
    """The names of the operators of a domain; none for an unknown domain."""
    operator: Callable[[str, str], Operator | None]
    """The operator with a name and a domain."""


@rule("runtime.operator", "correct it, or add `nonstandard: true` to its kernels")
def runtime_operator(subject: TreeRuntime) -> Iterator[Problem]:
    """A kernel implements versions and types of an operator that exists, unless it is nonstandard."""
    runtime = subject.runtime
    for key, kernels in runtime.operators.items():
        domain, _, name = key.rpartition(".")
        if domain not in runtime.opsets:
            yield Problem(f"{key}: `opsets` has no domain {domain!r}", ("operators", key), ADD_DOMAIN)
        elif known := subject.names(domain):
            operator = subject.operator(name, domain) if name in known else None
            for position, kernel in enumerate(kernels):
                keys: Keys = ("operators", key, position)
                if operator is not None and not kernel.nonstandard:
                    yield from _kernel_problems(kernel, operator, keys)
                elif not kernel.nonstandard:
                    yield Problem(f"{domain} has no operator {name!r}", keys, nearest(name, known))


ADD_DOMAIN = "write the operator as ai.onnx.Add, and add its domain to `opsets`"


def _kernel_problems(kernel: Kernel, operator: Operator, keys: Keys) -> Iterator[Problem]:
    versions = [each for each in operator.versions if kernel.implements(each.since_version)]
    if not versions:
        reason = f"{operator.name} has no version {versions_text(kernel.versions)}"
        yield Problem(reason, (*keys, "versions"))
    for version in versions:
        formals = [each.name for each in (*version.inputs, *version.outputs)]
        allowed = [*version.type_constraints, *formals]
        for name in kernel.types.keys() - allowed:
            reason = f"{version.id} has no type variable or parameter {name!r}"
            yield Problem(reason, (*keys, "types", name), nearest(name, allowed))


@rule("runtime.wrong", "write it as ai.onnx.Add:14, and add the kernel")
def runtime_wrong(subject: TreeRuntime) -> Iterator[Problem]:
    """An operator version with wrong results has a kernel."""
    for text in subject.runtime.wrong:
        key, _, version = text.rpartition(":")
        kernels = subject.runtime.operators.get(key, ()) if version.isdecimal() else ()
        if not any(each.implements(int(version)) for each in kernels):
            yield Problem(f"there is no kernel of {text}", ("wrong", text))

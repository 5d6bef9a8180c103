"""Values that the shell suggests for options and arguments. Slow imports are inside the functions."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from opshift.model.element_types import BY_NAME
from opshift.model.errors import OpshiftError
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.registry.explanations import refusal_causes

if TYPE_CHECKING:
    from opshift.registry.registry import Registry

Complete = Callable[[typer.Context], list[str]]


def _from_registry(values: Callable[["Registry", typer.Context], Iterable[str]]) -> Complete:
    """Return a completion; `values` receives the registry of built-in and `--opsets` definitions."""

    def complete(context: typer.Context) -> list[str]:
        from opshift.registry.registry import load_registry

        try:
            folders = [Path(each) for each in context.params.get("folders") or ()]
            return list(values(load_registry(folders), context))
        # Suggest nothing: the command reports errors of its arguments.
        except (OpshiftError, OSError):
            return []

    return complete


def _target_names(registry: "Registry", _: typer.Context) -> Iterator[str]:
    for domain in registry.domains():
        prefix = "" if domain == DEFAULT_DOMAIN else f"{domain}="
        yield from (f"{prefix}{opset}" for opset in range(1, registry.newest_opset(domain) + 1))
    for product, releases in registry.releases.products.items():
        yield from (f"{product}-{version}" for version in releases)
    for variant in registry.releases.variants:
        # Only the newest version of each variant: all versions would hide the other targets.
        yield f"{variant}-{list(registry.releases.versions_of(variant))[-1]}"
    yield from complete_runtime()


def _operator_names(registry: "Registry", context: typer.Context) -> Iterator[str]:
    domain = context.params.get("domain")
    if domain is not None:
        yield from registry.names(domain)
        return
    for each in registry.domains():
        prefix = "" if each == DEFAULT_DOMAIN else f"{each}."
        yield from (f"{prefix}{name}" for name in registry.names(each))


def _version_names(registry: "Registry", context: typer.Context) -> Iterator[str]:
    from opshift.cli.registry.operator_text import parse_operator

    named = parse_operator(context.params.get("operator") or "", context.params.get("domain"), None)
    operator = registry.operator(named.op_type, named.domain or "")
    yield from (str(each.since_version) for each in operator.versions) if operator else ()


def _opset_numbers(registry: "Registry", context: typer.Context) -> Iterator[str]:
    return map(str, range(1, registry.newest_opset(context.params.get("domain") or "") + 1))


complete_target = _from_registry(_target_names)
complete_operator = _from_registry(_operator_names)
complete_version = _from_registry(_version_names)
complete_opset = _from_registry(_opset_numbers)
complete_domain = _from_registry(lambda registry, _: registry.domains())
complete_product = _from_registry(lambda registry, _: registry.releases.products)


def complete_allow() -> Iterable[str]:
    """Return the values of --allow."""
    from opshift.converter.options import ALLOW_VALUES

    return ALLOW_VALUES


def complete_runtime() -> Iterable[str]:
    """Return the names of the built-in runtimes, such as `onnxruntime-1.20.1`."""
    from opshift.registry.runtimes.files import runtime_files

    return runtime_files()


def complete_type() -> Iterable[str]:
    """Return the names of element types, such as `float16`."""
    return BY_NAME


def complete_status() -> Iterable[str]:
    """Return the possible statuses of an operator at an opset, such as `deprecated`."""
    from opshift.registry.selection import STATUSES

    return STATUSES


def complete_change_rule() -> Iterable[str]:
    """Return the ids of the rules that classify changes."""
    from opshift.registry.changes.classes import CHANGE_RULES

    return CHANGE_RULES


def complete_refusal_code() -> Iterable[str]:
    """Return the codes of refusals, such as `type.unsupported`."""
    return refusal_causes()


def complete_policy() -> Iterable[str]:
    """Return the names of the policies for changes."""
    from opshift.registry.changes.policies import POLICIES

    return POLICIES


def complete_proposal_rule() -> Iterable[str]:
    """Return the ids of the rules for proposals."""
    from opshift.proposals.rules.rule_table import rule_table

    return rule_table()

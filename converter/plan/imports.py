"""Opset imports after a conversion: changed, removed because nothing needs them, or merged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from opshift.converter.options import Target
from opshift.converter.plan.changes import ContainerPlan, ImportChanges, OpsetChange
from opshift.model.messages import ModelProto
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.registry.releases import Releases


def plan_imports(
    model: ModelProto,
    imports: Mapping[str, int],
    target: Target,
    releases: Releases,
    operators: Collection[tuple[str, str]],
    plans: Collection[ContainerPlan],
    *,
    fold: bool = False,
) -> ImportChanges:
    """Return the changes of the opset imports of a model, given the operators and plans of all its nodes.

    Imports that the target does not know are removed unless an operator needs them: runtimes refuse to load
    a model with such an import. With `fold`, all imports that no operator needs are removed.
    """
    changed = tuple(
        OpsetChange(domain, source, target.opsets[domain])
        for domain, source in imports.items()
        if target.opsets.get(domain, source) != source
    )
    removed: dict[str, int] = {}
    if fold or changed or target.ir_version is not None or target.documented is not None:
        # otherwise, the target is that of the model
        final_opset = {**imports, **target.opsets}.get(DEFAULT_DOMAIN)
        others = {domain: opset for domain, opset in imports.items() if domain not in target.opsets}
        unknown = {
            domain: opset
            for domain, opset in others.items()
            if fold
            or domain in releases.internal_domains
            or not _is_known(domain, opset, final_opset, releases)
            or not (target.documented is None or domain in target.documented)
        }
        needed = set(_needed_domains(model, operators, plans)) if unknown else set()
        removed = {domain: opset for domain, opset in unknown.items() if domain not in needed}
    return ImportChanges(changed, frozenset(removed), (*_removals(removed, fold=fold), *_merges(model)))


def _is_known(domain: str, opset: int, default_opset: int | None, releases: Releases) -> bool:
    """Return whether releases of ONNX with an opset of the default domain have that of another one."""
    newest = releases.companion_of(domain, default_opset) if default_opset is not None else None
    return newest is None or opset <= newest


def _needed_domains(
    model: ModelProto, operators: Collection[tuple[str, str]], plans: Collection[ContainerPlan]
) -> Iterator[str]:
    yield DEFAULT_DOMAIN
    yield from (canonical_domain(domain) for domain, _ in operators)
    yield from (canonical_domain(function.domain) for function in model.functions)
    for plan in (inner for each in plans for inner in each.walk()):
        for change in plan.changes:
            yield from (operator.domain for operator in change.result.operators)


def _removals(removed: Mapping[str, int], *, fold: bool) -> Iterator[str]:
    reason = "no node needs it" if fold else "no node needs it, and the target lacks it"
    for domain, opset in removed.items():
        yield f"model: the import of {domain} {opset} was removed: {reason}"


def _merges(model: ModelProto) -> Iterator[str]:
    counts = Counter(canonical_domain(each.domain) for each in model.opset_import)
    for domain, count in counts.items():
        if count > 1:
            yield f"model: {count} equal imports of {domain} were merged"

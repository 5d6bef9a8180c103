"""Operators of other domains that replace nodes of ONNX operators and that a runtime implements."""

from collections.abc import Iterator, Mapping

from opshift.adapters.core.equivalents import Equivalent, equivalents
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry
from opshift.registry.runtimes.runtime import Runtime
from opshift.runtimes.model_nodes import ModelNodes


def find_equivalents(
    version: OperatorVersion, types: Mapping[str, str], runtime: Runtime, registry: Registry
) -> tuple[Equivalent, ...]:
    """Return equivalents of an operator version with a kernel; `types` has types by type variable."""
    return tuple(
        each
        for domain in runtime.opsets
        if registry.is_open(domain)
        for each in equivalents(registry, domain).get(version.id, ())
        # Replacements have the type variables of the operators that they replace.
        if runtime.kernel(each.replacement, types)
    )


def replacements_of_unknown(
    nodes: ModelNodes, opsets: Mapping[str, int], runtime: Runtime, registry: Registry
) -> Iterator[Equivalent]:
    """Yield equivalents for nodes with operators that do not exist at the target opsets."""
    for node in nodes.nodes:
        version, opset = node.operator, opsets.get(node.domain)
        if version and opset and not registry.known_at(version.name, opset, node.domain):
            types = {name: each for name, each in node.types if each}
            yield from find_equivalents(version, types, runtime, registry)

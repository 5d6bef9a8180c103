"""Detection of operators that onnx.reference evaluates as a different version.

For many operators it implements only the newest version, and evaluates older nodes as that version, even if
the meaning has changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from opshift.converter.verification.parts import parts_of
from opshift.registry.catalogue import Registry
from opshift.registry.models import OperatorVersion
from opshift.registry.names import DEFAULT_DOMAIN, canonical_domain
from opshift.registry.steps import Answer, IgnoreAttribute

NEWEST = 2**31
"""Version of an implementation without a version number."""
_VERSION_SUFFIX = re.compile(r"_(\d+)$")


def unimplemented(model: Any, registry: Registry) -> Iterator[str]:
    """Yield a reason for each operator that is evaluated as a newer version with a different meaning."""
    functions = {(canonical_domain(each.domain), each.name) for each in model.functions}
    calls = {
        (canonical_domain(node.domain), node.op_type, part.opsets.get(canonical_domain(node.domain), 0))
        for part in parts_of(model)
        for node in part.container.node
    }
    for domain, op_type, opset in sorted(calls):
        operator = registry.at(op_type, opset, domain)
        if operator is not None and (domain, op_type) not in functions:
            yield from _changed_meanings(operator, _implemented_version(operator, opset), registry)


def _changed_meanings(operator: OperatorVersion, implemented: int, registry: Registry) -> Iterator[str]:
    history = registry.operator(operator.name, operator.domain)
    assert history is not None
    for version in history.versions:
        is_between = operator.since_version < version.since_version <= implemented
        if is_between and version.step is not None and not _is_equivalent(version.step.up):
            yield f"it evaluates {operator.id} as version {version.since_version}, which means something else"


def _is_equivalent(up: Answer | None) -> bool:
    """Return whether every node of the older version has the same results in the newer one."""
    if isinstance(up, tuple):
        return all(isinstance(verb, IgnoreAttribute) for verb in up)
    return up in (None, "compatible")


def _implemented_version(operator: OperatorVersion, opset: int) -> int:
    """Return the version that the implementation evaluates."""
    if operator.domain != DEFAULT_DOMAIN:
        return NEWEST
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.ops import load_op

    try:
        name = load_op("", operator.name, opset, evaluator_cls=ReferenceEvaluator).__name__
    except Exception:  # missing, or dependent on the node: loading the model fails if it is missing
        return operator.since_version
    if name == "<lambda>":  # evaluates the function body of this version
        return operator.since_version
    match = _VERSION_SUFFIX.search(name)
    return int(match[1]) if match else NEWEST

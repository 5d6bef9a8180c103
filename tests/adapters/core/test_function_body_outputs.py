"""ONNX operators with a function body compute the same when other operators replace them."""

from __future__ import annotations

from itertools import chain

import onnx
import pytest
from support.any_runtime import compare_before_and_after
from support.cases import own_cases, published_cases
from support.domains import wire

from opshift import default_registry, plan_version
from opshift.registry.models import OperatorVersion

FIRST_OPSET = 1
"""No earlier opset has operators that could replace one of this opset."""


def _versions_with_body() -> list[OperatorVersion]:
    """Return every operator version in ONNX's history that has a function body."""
    schemas = [
        each
        for each in onnx.defs.get_all_schemas_with_history()
        if (each.has_function or each.has_context_dependent_function) and each.since_version > FIRST_OPSET
    ]
    registry = default_registry()
    versions = [registry.get_schema(each.name, each.since_version, each.domain) for each in schemas]
    return sorted(versions, key=lambda version: (version.name, version.since_version))


def _target(version: OperatorVersion) -> dict[str, int]:
    """Return the opset below the operator, or below this version if the operator exists since opset 1."""
    operator = default_registry().operator(version.name, version.domain)
    assert operator is not None
    first = operator.versions[0]
    exists_since_first = first.since_version == FIRST_OPSET
    assert exists_since_first or first.before is not None, (
        "the first version does not define how to convert to earlier opsets"
    )
    return {wire(version.domain): (version if exists_since_first else first).since_version - 1}


@pytest.mark.parametrize("version", _versions_with_body(), ids=lambda version: str(version.id))
def test_replacement_preserves_outputs(version: OperatorVersion) -> None:
    target, opset = _target(version), version.since_version
    own = own_cases(version, opset, target[wire(version.domain)])
    for case in chain(own, published_cases(version, opset)):
        is_refused = plan_version(case.model, target, allow="approximate").refusals
        if not is_refused and compare_before_and_after(case, target):
            return
    pytest.fail("no case exercises this operator; add a row to tests/support/nodes")

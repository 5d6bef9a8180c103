"""Operators that ONNX defines by others compute the same when these take their place."""

from __future__ import annotations

from itertools import chain

import onnx
import pytest
from support.anywhere import keeps_its_numbers
from support.cases import own_cases, published_cases
from support.domains import wire

from opshift import default_registry, plan_version
from opshift.registry.models import OperatorVersion

OLDEST = 1
"""Below it there is nothing that could take an operator's place."""


def _functions() -> list[OperatorVersion]:
    """Every version with a body, of all that ONNX ever had."""
    schemas = [
        each
        for each in onnx.defs.get_all_schemas_with_history()
        if (each.has_function or each.has_context_dependent_function) and each.since_version > OLDEST
    ]
    registry = default_registry()
    found = [registry.get_schema(each.name, each.since_version, each.domain) for each in schemas]
    return sorted(found, key=lambda version: (version.name, version.since_version))


def _target(version: OperatorVersion) -> dict[str, int]:
    """Where the operator does not exist, or, if it always did, where it has the form before."""
    operator = default_registry().operator(version.name, version.domain)
    assert operator is not None
    first = operator.versions[0]
    stays = first.since_version == OLDEST
    assert stays or first.before is not None, "nothing says how it is expressed"
    return {wire(version.domain): (version if stays else first).since_version - 1}


@pytest.mark.parametrize("version", _functions(), ids=lambda version: str(version.id))
def test_the_operator_and_what_expresses_it_compute_the_same(version: OperatorVersion) -> None:
    target, opset = _target(version), version.since_version
    own = own_cases(version, opset, target[wire(version.domain)])
    for case in chain(own, published_cases(version, opset)):
        is_refused = plan_version(case.model, target, allow="approximate").refusals
        if not is_refused and keeps_its_numbers(case, target):
            return
    pytest.fail("no case of it is run")

"""The opset that a refusal names as the lowest or highest: the node can be converted to it."""

from __future__ import annotations

import pytest
from support.nodes import nodes
from support.published import published

from opshift import OpshiftError, plan_version

CASES = {
    **{f"{name}-published": found[0].model for (_, name), found in published().items() if found},
    **{f"{name}-{version}": rows[0].case.model for (_, name, version), rows in nodes().items() if rows},
}


@pytest.mark.parametrize("case", CASES)
def test_nodes_reach_the_nearest_opset_of_their_refusals(case: str) -> None:
    model = CASES[case]
    for target in (5, 8, 11, 15, 20):
        try:
            refusals = plan_version(model, target).refusals
        except OpshiftError:  # the model is invalid
            return
        for refusal in refusals:
            if refusal.nearest:
                reached = plan_version(model, {refusal.domain: refusal.nearest}).refusals
                assert refusal.place not in {each.place for each in reached}

"""Every refusal that `allow="approximate"` lifts states a bound of the error."""

from __future__ import annotations

import pytest
from support.cases import own_cases, published_cases
from support.steps import all_steps, is_up, opset_before, target_after

from opshift import plan_version
from opshift.adapters.core.adapter_table import StepKey, error_bound

STEPS = [name for name, step in all_steps().items() if step.kind == "adapter" and not is_up(step)]


@pytest.mark.parametrize("name", STEPS)
def test_approximate_step_states_its_error(name: str) -> None:
    step = all_steps()[name]
    before = opset_before(step)
    operator = step.source
    for case in (*own_cases(operator, before, step.opset), *published_cases(operator, before)):
        for refusal in plan_version(case.model, target_after(step)).refusals:
            if "--allow approximate" in refusal.remedy:
                key = StepKey(operator.domain, operator.name, operator.since_version, step.opset)
                assert refusal.reason.endswith(f"; the error is {error_bound(key)}")
                assert error_bound(key)

"""Assertions for the tests of private domains. This module needs `pip install 'opshift[verify]'`.

from opshift.testing import assert_step_preserves_outputs

def test_scale_2() -> None:
    assert_step_preserves_outputs("Scale", 1, 2, domain="com.acme")
"""

from opshift.analysis.verification.assert_step import StepCoverage as StepCoverage
from opshift.analysis.verification.assert_step import (
    assert_step_preserves_outputs as assert_step_preserves_outputs,
)

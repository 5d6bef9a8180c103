"""Plan a conversion and print what blocks it; the model is not modified.

python examples/plan_conversion.py tests/golden/segmenter-9.onnx 8
"""

from __future__ import annotations

import sys

import opshift


def main(source: str, target: str) -> None:
    """Print the refusals of a conversion, then those that remain if rounding differences are allowed."""
    plan = opshift.plan_version(source, target)
    print(f"{len(plan.refusals)} refusals")
    for refusal in plan.refusals:
        print(f"{refusal.place} ({refusal.operator}): {refusal.reason}")
        print(f"  remedy: {refusal.remedy}")

    relaxed = opshift.plan_version(source, target, allow="approximate")
    print(f"{len(relaxed.refusals)} refusals if rounding differences are allowed")
    for kind, reason in relaxed.allowances:
        print(f"  {kind}: {reason}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])

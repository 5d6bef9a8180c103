"""Look up and select operators: versions, signatures, and the changes between versions.

python examples/query_registry.py
"""

from __future__ import annotations

import json

import opshift


def main() -> None:
    """Print what the registry contains about Softmax, and select operators by type and change."""
    registry = opshift.default_registry()

    softmax = registry.get_schema("Softmax", 12)
    print(f"opset 12 has {softmax.id}; axis is {softmax.attributes['axis'].default} by default")

    operator = registry.operator("Softmax")
    assert operator is not None
    for version in operator.versions:
        print(f"{version.id}: {version.step.change if version.step else 'first version'}")

    in_bfloat16 = registry.select(opset=20, accepts="bfloat16")
    print(f"{len(in_bfloat16)} operators accept bfloat16 at opset 20: {in_bfloat16[0].id}, ...")
    for first in registry.select("Re[ls]*", accepts="bfloat16", versions="first"):
        print(f"{first.name} accepts bfloat16 since opset {first.since_version}")
    changed = registry.select(domain="ai.onnx", changed=(13, 17), function=True)
    print("functions that changed from opset 13 to 17:", *(version.name for version in changed))
    print(json.dumps(softmax.to_dict()["inputs"]))

    try:
        registry.get_schema("Sofmax", 12)
    except opshift.ResolveError as error:
        print(f"{error.reason}; {error.remedy}")


if __name__ == "__main__":
    main()

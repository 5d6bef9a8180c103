"""Look up operators: versions, signatures, and the changes between versions.

python examples/query_registry.py
"""

from __future__ import annotations

import opshift


def main() -> None:
    """Print what the registry contains about Softmax."""
    registry = opshift.default_registry()

    softmax = registry.get_schema("Softmax", 12)
    print(f"opset 12 has {softmax.id}; axis is {softmax.attributes['axis'].default} by default")

    operator = registry.operator("Softmax")
    assert operator is not None
    for version in operator.versions:
        print(f"{version.id}: {version.step.change if version.step else 'first version'}")

    try:
        registry.get_schema("Sofmax", 12)
    except opshift.ResolveError as error:
        print(f"{error.reason}; {error.remedy}")


if __name__ == "__main__":
    main()

"""Opset imports as a mapping from domain to version."""

from __future__ import annotations

from typing import Any

from opshift.converter.errors import InvalidModel
from opshift.registry.names import DEFAULT_DOMAIN, canonical_domain


def opset_imports(imports: Any, ir_version: int = 3) -> dict[str, int]:
    """Return opset imports as a mapping from canonical domain to version.

    Args:
        imports: OperatorSetIdProtos of a model or function.
        ir_version: IR version of the model; below 3, a model without imports uses opset 1.

    Raises:
        InvalidModel: a domain is imported with two versions, or required imports are missing.
    """
    found: dict[str, int] = {}
    for each in imports:
        domain = canonical_domain(each.domain)
        if found.setdefault(domain, each.version) != each.version:
            raise InvalidModel(
                f"domain {domain} is imported twice, as opset {found[domain]} and {each.version}",
                remedy="keep the opset that the nodes are written for",
            )
    if found:
        return found
    if ir_version >= 3:
        raise InvalidModel(
            "the model has no opset import",
            remedy="add one for each domain in use, such as ai.onnx 17",
        )
    return {DEFAULT_DOMAIN: 1}

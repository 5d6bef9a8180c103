"""Opset imports as a mapping."""

from __future__ import annotations

from typing import Any

from opshift.converter.errors import InvalidModel
from opshift.registry.names import DEFAULT_DOMAIN, canonical_domain


def opset_imports(imports: Any, ir_version: int = 3) -> dict[str, int]:
    """Domain, as the registry spells it, to opset version.

    Raises:
        InvalidModel: a domain is imported with two versions, or a model of IR version 3 has no imports.
    """
    found: dict[str, int] = {}
    for each in imports:
        domain = canonical_domain(each.domain)
        if found.setdefault(domain, each.version) != each.version:
            raise InvalidModel(
                f"domain {domain} is imported twice, as opset {found[domain]} and {each.version}",
                remedy="keep the import that the nodes were written for",
            )
    if found:
        return found
    if ir_version >= 3:
        raise InvalidModel(
            "the model has no opset import",
            remedy="add one for each domain in use, such as ai.onnx 17",
        )
    return {DEFAULT_DOMAIN: 1}

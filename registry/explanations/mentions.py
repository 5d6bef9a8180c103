"""Commands about the operators, opsets, IR versions and domains that an unknown message mentions."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Final

from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.registry.explanations.tool_errors import Solution
from opshift.registry.ir_versions import ir_versions
from opshift.registry.registry import Registry

MAX_TEXT = 20_000
"""Number of characters of a message that are read."""

MIN_NAME = 4
"""Minimum length of the name of an operator in a message: shorter ones, such as If, are words as well."""

MAX_OPERATORS = 5

WORD: Final = re.compile(r"(?<![\w.])[A-Z]\w*")
"""Possible name of an operator; the first word of a message may have a capital letter as well."""

OPSET: Final = re.compile(
    r"\b(?:opset|opset[ _]version|domain_version of)\W{0,4}(?:version\W{0,3})?(\d{1,3})\b", re.I
)

IR_VERSION: Final = re.compile(r"\bIR[ _]version\W{0,4}(\d{1,3})\b", re.I)


def commands_about(text: str, registry: Registry) -> tuple[Solution, ...]:
    """Return commands about the operators, opsets, IR versions and domains that a message mentions."""
    start = text[:MAX_TEXT]
    words = dict.fromkeys(
        each[0] for each in WORD.finditer(start) if each.start() and len(each[0]) >= MIN_NAME
    )
    found: list[Solution] = []
    for word in words:
        known = [domain for domain in registry.domains() if registry.operator(word, domain) is not None]
        if known and len(found) < MAX_OPERATORS:
            name = word if known[0] == DEFAULT_DOMAIN else f"{known[0]}.{word}"
            found.append(Solution(run=f"opshift show {name}", note=f"the versions and types of {word}"))
    for opset in _numbers(OPSET, start, range(1, registry.newest_opset() + 1)):
        note = f"converts the model to opset {opset}"
        found.append(Solution(run=f"opshift convert model.onnx fixed.onnx --target {opset}", note=note))
    for version in _numbers(IR_VERSION, start, ir_versions().versions):
        note = f"converts the model to IR version {version}; its opset stays"
        found.append(Solution(run=f"opshift convert model.onnx fixed.onnx --ir-version {version}", note=note))
    for domain in registry.domains():
        if domain in registry.releases.open_domains and domain in start:
            note = f"replaces the operators of {domain}"
            found.append(Solution(run=f"opshift convert model.onnx fixed.onnx --without {domain}", note=note))
    return tuple(found)


def _numbers(pattern: re.Pattern[str], text: str, known: Container[int]) -> list[int]:
    found = dict.fromkeys(int(each) for each in pattern.findall(text))
    return [each for each in found if each in known]

"""Explanations of errors: causes of opshift's refusals, errors of other tools, and commands that help."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.opsets import OPSETS
from opshift.registry.ir_versions import ir_versions
from opshift.registry.precompiled import load_precompiled
from opshift.registry.record import Record, from_file_content

if TYPE_CHECKING:
    from opshift.registry.registry import Registry

REFUSAL_CAUSES: Final = OPSETS / "refusals.yaml"

PRIVATE_CAUSE: Final = "adapter.refused"
"""Code of the cause of refusals with an unknown code, which adapters of private domains may use."""


TOOL_ERRORS: Final = OPSETS / "tool_errors.yaml"

MAX_PLACEHOLDER = 300
"""Maximum number of characters that a placeholder in a message matches."""

MIN_PART = 8
"""Minimum length of a text that matches a `ToolError` as a part of one of its messages."""

PLACEHOLDER: Final = re.compile(r"\{\w+\}")

MAX_TEXT = 20_000
"""Maximum number of characters of a message that are searched."""

MIN_NAME = 4
"""Minimum length of operator names to find in a message: shorter names, such as If, are common words."""

MAX_OPERATORS = 5

WORD: Final = re.compile(r"(?<![\w.])[A-Z]\w*")
"""Pattern of a capitalized word, which may be an operator name; the first word of a message is ignored."""

OPSET: Final = re.compile(
    r"\b(?:opset|opset[ _]version|domain_version of)\W{0,4}(?:version\W{0,3})?(\d{1,3})\b", re.I
)

UNSUPPORTED: Final = re.compile(r"\b(?:not|un)[ -]?support|\binvalid\b|\btoo (?:old|new|low|high)\b", re.I)
"""Words in a message that refuse the opset in the same part of the sentence."""

PART_END: Final = re.compile(r"[,;.]\s|:\s(?=[^,;.]*\bopset)", re.I)
"""End of a part of a message; a colon ends a part only if another opset follows."""

SUPPORTED_RANGE: Final = re.compile(
    r"(?<!not )\bsupport(?:s|ed)\b[^\d,;.]{0,40}?\b\d{1,3}\s*(?:to|through|and|-|\.\.)\s*(\d{1,3})\b", re.I
)
"""Pattern of a range of supported opsets, such as "supported: 9 to 14"."""

TOO_NEW: Final = re.compile(r"\btoo (?:new|high)\b", re.I)

FREQUENT_OPSETS: Final = 17, 13, 11
"""Opsets that many programs support, to propose in place of an unsupported one."""

IR_VERSION: Final = re.compile(r"\bIR[ _]version\W{0,4}(\d{1,3})\b", re.I)


class Cause(Record):
    """Cause of refusals; a comment in `refusals.yaml` describes the placeholders of `summary`."""

    title: str
    summary: str
    cause: str
    example: str
    remedy: str


@cache
def refusal_causes(path: Path = REFUSAL_CAUSES) -> Mapping[str, Cause]:
    """Return the causes of refusals by code; raise `DefinitionError` if the file is invalid."""
    return MappingProxyType(load_precompiled(path, (), lambda: _read_causes(path)))


def _read_causes(path: Path) -> dict[str, Cause]:
    from opshift.registry.yaml_files import load_yaml

    return from_file_content(dict[str, Cause], load_yaml(path), path)


def refusal_cause(code: str) -> Cause:
    """Return the cause with a code, or `adapter.refused` for an unknown code (of a private adapter)."""
    causes = refusal_causes()
    return causes.get(code) or causes[PRIVATE_CAUSE]


class Solution(Record):
    """Command that solves an error, and when to use it."""

    run: str
    note: str = ""


class ToolError(Record):
    """Error that other tools report; `messages` may contain placeholders such as `{version}`."""

    title: str
    messages: tuple[str, ...]
    tools: str
    cause: str
    commands: tuple[Solution, ...]
    sources: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The messages, with `...` for each placeholder."""
        return tuple(PLACEHOLDER.sub("...", each) for each in self.messages)

    def matches(self, text: str) -> bool:
        """Return whether a text contains a message, or is at least `MIN_PART` characters of one."""
        part = " ".join(text.lower().split())
        is_part = len(part) >= MIN_PART and any(part in each.lower() for each in self.messages)
        return is_part or any(_pattern(each).search(part) for each in self.messages)


class _ToolErrors(Record):
    """Content of `tool_errors.yaml`."""

    errors: tuple[ToolError, ...]


@cache
def tool_errors() -> tuple[ToolError, ...]:
    """Return all known errors of other tools, in the order of `tool_errors.yaml`."""
    from opshift.registry.yaml_files import load_yaml

    return from_file_content(_ToolErrors, load_yaml(TOOL_ERRORS), TOOL_ERRORS).errors


@cache
def _pattern(message: str) -> re.Pattern[str]:
    """Return a pattern that finds a message in lower-case text with single spaces.

    The pattern omits placeholders at both ends of the message, because they match any text.
    """
    parts = PLACEHOLDER.split(message.lower())
    # `filter` drops the empty part that `split` returns if a placeholder is at the start or end
    return re.compile(f".{{0,{MAX_PLACEHOLDER}}}?".join(map(re.escape, filter(None, parts))))


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
    opsets = range(1, registry.newest_opset() + 1)
    parts = [each for each in PART_END.split(start) if UNSUPPORTED.search(each)]
    refused = [each for part in parts for each in _known_numbers_in(OPSET, part, opsets)]
    accepted = [each for each in _known_numbers_in(OPSET, start, opsets) if each not in refused]
    if refused and not accepted:
        accepted = _known_numbers_in(SUPPORTED_RANGE, start, {*opsets}.difference(refused))
    highest = min(refused, default=0) - 1 if TOO_NEW.search(start) else registry.newest_opset()
    others = [each for each in FREQUENT_OPSETS if each not in refused and each <= highest]
    if refused and not accepted and others:
        other = others[0]
        note = (
            f"for an opset that the program supports, such as {other}: `opshift targets` lists those of many"
        )
        found.append(Solution(run=f"opshift convert model.onnx fixed.onnx --target {other}", note=note))
    for opset in accepted:
        note = f"converts the model to opset {opset}"
        found.append(Solution(run=f"opshift convert model.onnx fixed.onnx --target {opset}", note=note))
    for version in _known_numbers_in(IR_VERSION, start, ir_versions().versions):
        note = f"converts the model to IR version {version} and keeps its opset"
        found.append(Solution(run=f"opshift convert model.onnx fixed.onnx --ir-version {version}", note=note))
    for domain in registry.domains():
        if domain in registry.releases.open_domains and domain in start:
            note = f"replaces the operators of {domain}"
            found.append(Solution(run=f"opshift convert model.onnx fixed.onnx --without {domain}", note=note))
    return tuple(found)


def _known_numbers_in(pattern: re.Pattern[str], text: str, known: Container[int]) -> list[int]:
    found = dict.fromkeys(int(each) for each in pattern.findall(text))
    return [each for each in found if each in known]

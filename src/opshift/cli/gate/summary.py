"""Numbers of models by result, and of findings by cause, with a few examples of each."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from opshift.cli.findings.finding import Finding, Severity
from opshift.cli.gate.inspect_file import FAILED, GateResult

if TYPE_CHECKING:
    from opshift.cli.runtimes.runtime_table import RuntimeTable

MAX_EXAMPLES = 3
"""Number of examples that are kept for each cause, so that memory does not grow with the models."""

UNREADABLE = "model.readable"
"""Rule of `check` about files that are not models."""


@dataclass
class RuleCount:
    """Findings with the same rule, and the first finding of some models."""

    rule: str
    level: Severity
    models: int = 0
    findings: int = 0
    examples: list[Finding] = field(default_factory=list)
    helps: set[str] = field(default_factory=set)

    @property
    def help(self) -> str:
        """Advice for all findings; empty if they need different ones."""
        return next(iter(self.helps)) if len(self.helps) == 1 else ""

    @property
    def message(self) -> str:
        """Message of several examples, if all have the same one and no place in the model."""
        messages = {(each.place, each.message) for each in self.examples}
        place, message = min(messages)
        return message if len(self.examples) > 1 and len(messages) == 1 and not place else ""

    def add(self, finding: Finding) -> None:
        """Count a finding."""
        self.findings += 1
        if len(self.helps) < 2:  # one more would not change `help`
            self.helps.add(finding.help)

    def as_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        numbers = {"rule": self.rule, "level": self.level, "models": self.models, "findings": self.findings}
        keys = ("file", "place", "message", "help")
        examples = [{key: getattr(each, key) for key in keys} for each in self.examples]
        return {**numbers, "help": self.help, "examples": examples}


class Summary:
    """Summary of the results so far."""

    def __init__(self) -> None:
        self.models = 0
        self.failed = 0
        self.results: Counter[str] = Counter()
        self._bad_results: set[str] = set()
        self._causes: dict[tuple[str, str], RuleCount] = {}
        self.runtimes: RuntimeTable | None = None
        self._started = time.monotonic()

    def add(self, result: GateResult) -> None:
        """Count a result."""
        self.models += 1
        self.failed += not result.model.ok
        self.results[result.word] += 1
        if not result.model.ok:
            self._bad_results.add(result.word)
        if "runtimes" in result.model.data:
            self._add_runtimes(result.model.data)
        seen = set[tuple[str, str]]()
        for finding in result.model.findings:
            # files of one kind, such as Git LFS pointers, have one remedy
            is_about_file = result.word == FAILED or finding.rule == UNREADABLE
            key = finding.rule, finding.help if is_about_file else ""
            cause = self._causes.setdefault(key, RuleCount(finding.rule, finding.level))
            cause.add(finding)
            if key not in seen:
                seen.add(key)
                cause.models += 1
                cause.examples += [finding][: MAX_EXAMPLES - len(cause.examples)]

    def _add_runtimes(self, data: Mapping[str, object]) -> None:
        from opshift.cli.runtimes.runtime_table import RuntimeTable  # other commands do not need it

        self.runtimes = self.runtimes or RuntimeTable()
        self.runtimes.add(data)

    @property
    def causes(self) -> list[RuleCount]:
        """The causes, those of errors and of most models first."""
        return sorted(
            self._causes.values(), key=lambda each: (each.level != "error", -each.models, each.rule)
        )

    @property
    def counts(self) -> list[tuple[str, int]]:
        """The number of models by result, failures first."""
        return sorted(self.results.items(), key=lambda each: (each[0] not in self._bad_results, -each[1]))

    @property
    def seconds(self) -> float:
        """Seconds since the first model was requested."""
        return time.monotonic() - self._started

    def as_dict(self, *, interrupted: bool) -> dict[str, object]:
        """Return plain data for JSON."""
        runtimes = {"runtimes": self.runtimes.as_dict()} if self.runtimes else {}
        return {
            "models": self.models,
            "ok": self.models - self.failed,
            "results": dict(self.results),
            "causes": [each.as_dict() for each in self.causes],
            **runtimes,
            "interrupted": interrupted,
            "seconds": round(self.seconds, 1),
        }

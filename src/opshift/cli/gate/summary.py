"""Numbers of models by result, and of findings by cause, with a few examples of each."""

import time
from collections import Counter
from dataclasses import dataclass, field

from opshift.cli.findings.finding import Finding, Severity
from opshift.cli.gate.inspect_file import GateResult

MAX_EXAMPLES = 3
"""Number of examples that are kept for each cause, so that memory does not grow with the models."""


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
        self._causes: dict[str, RuleCount] = {}
        self._started = time.monotonic()

    def add(self, result: GateResult) -> None:
        """Count a result."""
        self.models += 1
        self.failed += not result.model.ok
        self.results[result.word] += 1
        seen = set[str]()
        for finding in result.model.findings:
            cause = self._causes.setdefault(finding.rule, RuleCount(finding.rule, finding.level))
            cause.add(finding)
            if finding.rule not in seen:
                seen.add(finding.rule)
                cause.models += 1
                cause.examples += [finding][: MAX_EXAMPLES - len(cause.examples)]

    @property
    def causes(self) -> list[RuleCount]:
        """The causes, those of errors and of most models first."""
        return sorted(
            self._causes.values(), key=lambda each: (each.level != "error", -each.models, each.rule)
        )

    @property
    def seconds(self) -> float:
        """Seconds since the first model was requested."""
        return time.monotonic() - self._started

    def as_dict(self, *, interrupted: bool) -> dict[str, object]:
        """Return plain data for JSON."""
        return {
            "models": self.models,
            "ok": self.models - self.failed,
            "results": dict(self.results),
            "causes": [each.as_dict() for each in self.causes],
            "interrupted": interrupted,
            "seconds": round(self.seconds, 1),
        }

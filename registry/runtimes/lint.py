"""Lint the files of runtimes."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from opshift.registry.errors import DefinitionFinding
from opshift.registry.lint.rule_table import rules_for
from opshift.registry.lint.runtimes import TreeRuntime
from opshift.registry.registry import Registry
from opshift.registry.runtimes.runtime import Runtime
from opshift.registry.yaml_files import MAX_FINDINGS, Positions


def runtime_findings(runtime: Runtime, path: Path, registry: Registry) -> list[DefinitionFinding]:
    """Return the violations of lint rules by the file of a runtime."""
    subject = TreeRuntime(runtime, registry.names, registry.operator, registry.is_open)
    every = ((rule.id, each) for rule in rules_for(TreeRuntime) for each in rule.check(subject))
    problems = list(islice(every, MAX_FINDINGS))
    if not problems:
        return []
    place = Positions(path).place
    return [
        DefinitionFinding.of_rule(rule, place(keys), reason, remedy)
        for rule, (reason, keys, remedy) in problems
    ]

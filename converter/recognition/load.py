"""Patterns of all operators, compiled into the wheel, or in a checkout into the cache."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Lock
from typing import Final

from opshift.converter.recognition.derive import derive
from opshift.converter.recognition.forms import form_patterns
from opshift.converter.recognition.patterns import Pattern, from_data, to_data
from opshift.converter.rewrite.routes import ROUTES
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.model.shared_results import share_results
from opshift.opsets import OPSETS
from opshift.registry.precompiled import CompiledFile
from opshift.registry.registry import Registry, default_registry

PATTERNS: Final = CompiledFile(
    Path(__file__).with_name("compiled.json"), [Path(__file__).parent, OPSETS / DEFAULT_DOMAIN], ROUTES
)

_COMPILING: Final = Lock()
"""Held while patterns are compiled: in a checkout, that takes seconds, and threads need not repeat it."""


@share_results
def compiled_patterns() -> tuple[Pattern, ...]:
    """Return the patterns of the project's operators in the default domain."""
    with _COMPILING:
        return tuple(map(from_data, json.loads(patterns_text())))


def patterns_text() -> str:
    """Return the patterns of the project's operators in JSON."""
    return PATTERNS.text("patterns", (), lambda: json.dumps(_compile(default_registry())))


def _compile(registry: Registry) -> list[object]:
    return [to_data(each) for name in registry.names() for each in patterns_of(name, "", registry)]


def patterns_of(op_type: str, domain: str, registry: Registry) -> list[Pattern]:
    """Return the patterns of an operator: its forms, and those of its newest version's expansions."""
    operator = registry.operator(op_type, domain)
    if operator is None:
        return []
    newest = operator.versions[-1]
    derived = derive(newest, registry) if newest.has_function else ()
    return [*form_patterns(operator, registry), *derived]

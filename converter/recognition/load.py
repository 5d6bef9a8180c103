"""Patterns of all operators, compiled into the wheel, or in a checkout into the user's cache."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Lock
from typing import Final

from opshift.converter.recognition.derive import derive
from opshift.converter.recognition.forms import form_patterns
from opshift.converter.recognition.pattern_groups import PatternGroup, grouped
from opshift.converter.recognition.patterns import Pattern, from_data, to_data
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.model.shared_data import share_results
from opshift.registry.precompiled import CompiledFile, compact_json
from opshift.registry.registry import Registry, default_registry
from opshift.rewriting.routes import ROUTES

_SOURCES: Final = ("constant_comparison", "derive", "expansion", "forms", "generalize", "load", "patterns")
"""Modules of this folder that determine the patterns; changes of other modules do not matter."""

PATTERNS: Final = CompiledFile(
    Path(__file__).with_name("compiled.json"),
    [Path(__file__).with_name(f"{each}.py") for each in _SOURCES],
    ROUTES,
    by_content=True,  # compiling all patterns needs a minute
)

_COMPILING: Final = Lock()
"""Lock held while patterns are compiled, so that threads do not repeat the work of seconds in a checkout."""


@share_results
def operator_names(registry: Registry) -> tuple[str, ...]:
    """Return the names of the operators of the default domain that can be recognized."""
    return tuple(each.name for each in registry.operators(DEFAULT_DOMAIN) if each.is_recognizable)


def pattern_groups(op_type: str, domain: str, registry: Registry) -> tuple[PatternGroup, ...]:
    """Return the patterns of an operator; precompiled if the default registry has the same definition."""
    own, standard = registry.operator(op_type, domain), default_registry().operator(op_type)
    if domain == DEFAULT_DOMAIN and (own is standard or own == standard):
        return _compiled(op_type)
    return grouped(patterns_of(op_type, domain, registry))


@share_results
def _compiled(op_type: str) -> tuple[PatternGroup, ...]:
    with _COMPILING:
        return grouped(from_data(json.loads(patterns_text(op_type))))


def patterns_text(op_type: str) -> str:
    """Return the patterns of an operator in the default domain and default registry, as JSON text."""
    registry = default_registry()
    return PATTERNS.text(
        f"patterns/{op_type}",
        [registry.file_of(op_type)],
        lambda: compact_json(to_data(patterns_of(op_type, DEFAULT_DOMAIN, registry))),
    )


def patterns_of(op_type: str, domain: str, registry: Registry) -> list[Pattern]:
    """Return the patterns from the forms of an operator and, with a function body, from its expansions."""
    operator = registry.operator(op_type, domain)
    if operator is None:
        return []
    newest = operator.versions[-1]
    derived = derive(operator, registry) if newest.has_function else ()
    return [*form_patterns(operator, registry), *derived]

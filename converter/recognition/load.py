"""Patterns of all operators, compiled into the wheel, or in a checkout into the cache."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Lock
from typing import Final

from opshift.converter.recognition.derive import derive
from opshift.converter.recognition.forms import form_patterns
from opshift.converter.recognition.patterns import IndexedPattern, Pattern, from_data, to_data
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.model.shared_data import share_results
from opshift.registry.precompiled import CompiledFile
from opshift.registry.registry import Registry, default_registry
from opshift.rewriting.routes import ROUTES

PATTERNS: Final = CompiledFile(Path(__file__).with_name("compiled.json"), [Path(__file__).parent], ROUTES)

_COMPILING: Final = Lock()
"""Held while patterns are compiled: in a checkout, that takes seconds, and threads need not repeat it."""


@share_results
def operator_names(registry: Registry) -> tuple[str, ...]:
    """Return the operators of the default domain that are recognized."""
    return tuple(each.name for each in registry.operators(DEFAULT_DOMAIN) if each.is_recognizable)


def compiled_patterns(op_type: str, registry: Registry) -> tuple[IndexedPattern, ...]:
    """Return the patterns of an operator of the default domain."""
    own, standard = registry.operator(op_type), default_registry().operator(op_type)
    if own is not standard and own != standard:
        return indexed_patterns(op_type, DEFAULT_DOMAIN, registry)
    return _compiled(op_type)


@share_results
def _compiled(op_type: str) -> tuple[IndexedPattern, ...]:
    with _COMPILING:
        return tuple(IndexedPattern.of(from_data(each)) for each in json.loads(patterns_text(op_type)))


def indexed_patterns(op_type: str, domain: str, registry: Registry) -> tuple[IndexedPattern, ...]:
    """Return the patterns of an operator, see `patterns_of`."""
    return tuple(map(IndexedPattern.of, patterns_of(op_type, domain, registry)))


def patterns_text(op_type: str) -> str:
    """Return the patterns of an operator of the project's default domain in JSON."""
    registry = default_registry()
    return PATTERNS.text(
        f"patterns/{op_type}",
        [registry.file_of(op_type)],
        lambda: json.dumps([*map(to_data, patterns_of(op_type, DEFAULT_DOMAIN, registry))]),
    )


def patterns_of(op_type: str, domain: str, registry: Registry) -> list[Pattern]:
    """Return the patterns of an operator: its forms, and those of its newest version's expansions."""
    operator = registry.operator(op_type, domain)
    if operator is None:
        return []
    newest = operator.versions[-1]
    derived = derive(operator, registry) if newest.has_function else ()
    return [*form_patterns(operator, registry), *derived]

"""Causes of refusals: permanent codes, with their descriptions."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from opshift.opsets import OPSETS
from opshift.registry.precompiled import load_precompiled
from opshift.registry.record import Record, from_file_content

REFUSAL_CAUSES: Final = OPSETS / "refusals.yaml"

PRIVATE_CAUSE: Final = "adapter.refused"
"""Cause of the refusals of private adapters that name none, or an unknown one."""


class Cause(Record):
    """Cause of refusals; `refusals.yaml` describes the placeholders of `summary`."""

    title: str
    summary: str
    cause: str
    example: str
    remedy: str


@cache
def refusal_causes(path: Path = REFUSAL_CAUSES) -> Mapping[str, Cause]:
    """Return the causes by code; raise `DefinitionError` if the file is invalid."""
    return MappingProxyType(load_precompiled(path, (), lambda: _read(path)))


def _read(path: Path) -> dict[str, Cause]:
    from opshift.registry.yaml_files import load_yaml

    return {code: from_file_content(Cause, content, path) for code, content in load_yaml(path).items()}


def refusal_cause(code: str) -> Cause:
    """Return the cause with a code, or `adapter.refused` for an unknown code of a private adapter."""
    causes = refusal_causes()
    return causes.get(code) or causes[PRIVATE_CAUSE]

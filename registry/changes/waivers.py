"""Waivers: findings that are accepted for a reason until an expiry date."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError, field_validator

from opshift.registry.changes.classify import change_rules
from opshift.registry.errors import DefinitionError, Place
from opshift.registry.frozen import Frozen
from opshift.registry.yaml_files import line_of, load_yaml


class Waiver(Frozen):
    """Permission for one operator to violate one rule until the end of a day."""

    rule: str
    operator: str
    """`ai.onnx.Clip` for all versions, `ai.onnx.Clip:6` for one."""
    reason: Annotated[str, Field(min_length=10)]
    until: date

    @field_validator("rule")
    @classmethod
    def _check_rule(cls, rule: str) -> str:
        if rule not in change_rules():
            raise ValueError(f"unknown rule {rule!r}")
        return rule

    def covers(self, rule: str, operator: str) -> bool:
        """Return whether the waiver applies to a finding, regardless of its expiry."""
        return rule == self.rule and self.operator in (operator, operator.rpartition(":")[0])

    def is_expired(self, today: date) -> bool:
        """Return whether the last day has passed."""
        return today > self.until


def load_waivers(path: Path) -> tuple[Waiver, ...]:
    """Read a YAML list of waivers.

    Raises:
        DefinitionError: the file is not YAML, has the wrong format, or names an unknown rule.
    """
    try:
        return _ADAPTER.validate_python(load_yaml(path) or [])
    except ValidationError as error:
        first = error.errors()[0]
        place = Place(str(path), line_of(path, first["loc"]))
        raise DefinitionError(first["msg"].removeprefix("Value error, "), place=place) from error


_ADAPTER: TypeAdapter[tuple[Waiver, ...]] = TypeAdapter(tuple[Waiver, ...])

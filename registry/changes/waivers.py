"""Waivers: findings that somebody accepted, for a reason and until a day."""

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
    """One rule that one operator may break until the end of a day."""

    rule: str
    operator: str
    """`ai.onnx.Clip` for all its versions, `ai.onnx.Clip:6` for one."""
    reason: Annotated[str, Field(min_length=10)]
    until: date

    @field_validator("rule")
    @classmethod
    def _is_a_rule(cls, rule: str) -> str:
        if rule not in change_rules():
            raise ValueError(f"there is no rule {rule!r}")
        return rule

    def covers(self, rule: str, operator: str) -> bool:
        """Whether it is about a finding, expired or not."""
        return rule == self.rule and self.operator in (operator, operator.rpartition(":")[0])

    def is_expired(self, today: date) -> bool:
        """Whether its last day is over."""
        return today > self.until


def load_waivers(path: Path) -> tuple[Waiver, ...]:
    """Read a YAML list of waivers.

    Raises:
        DefinitionError: the file is not YAML, breaks the format, or names a rule that there is not.
    """
    try:
        return _WAIVERS.validate_python(load_yaml(path) or [])
    except ValidationError as error:
        first = error.errors()[0]
        place = Place(str(path), line_of(path, first["loc"]))
        raise DefinitionError(first["msg"].removeprefix("Value error, "), place=place) from error


_WAIVERS: TypeAdapter[tuple[Waiver, ...]] = TypeAdapter(tuple[Waiver, ...])

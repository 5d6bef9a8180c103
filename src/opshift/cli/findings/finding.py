"""Findings about files, and results of commands for one model."""

from collections.abc import Mapping
from typing import Literal

from opshift.model.frozen_record import FrozenRecord

Severity = Literal["error", "warning", "note"]


class Finding(FrozenRecord):
    """Finding about a file, as code hosts show it.

    Attributes:
        rule: the id of the rule or of the cause, such as `type.unsupported`.
        level: the severity; a command fails on an error.
        message: the problem, in one sentence.
        file: the location of the file: a path or a URL.
        place: the graph and node in a model, or the operator of a definition.
        help: how to solve it.
        line: the line in a text file, from 1; 0 without one.
    """

    rule: str
    level: Severity
    message: str
    file: str
    place: str
    help: str = ""
    line: int = 0


class ModelResult(FrozenRecord):
    """Result of a command for one model.

    Attributes:
        file: the location of the model: a path or a URL.
        ok: whether the command exits with 0 for this model.
        findings: the findings about the model.
        data: the JSON object that the command prints for this model alone.
    """

    file: str
    ok: bool
    findings: tuple[Finding, ...]
    data: Mapping[str, object]

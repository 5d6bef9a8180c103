"""Errors of other tools about models, with their causes and the commands that solve them."""

import re
from functools import cache
from typing import Final

from opshift.opsets import OPSETS
from opshift.registry.record import Record, from_file_content

TOOL_ERRORS: Final = OPSETS / "tool_errors.yaml"

MAX_PLACEHOLDER = 300
"""Maximum number of characters that a placeholder of a message represents."""

MIN_PART = 8
"""Minimum number of characters of a part of a message that is looked up."""


PLACEHOLDER: Final = re.compile(r"\{\w+\}")


class Solution(Record):
    """Command that solves an error, and when to use it."""

    run: str
    note: str = ""


class ToolError(Record):
    """Error of other tools: `messages` may contain placeholders such as `{version}`."""

    title: str
    messages: tuple[str, ...]
    tools: str
    cause: str
    commands: tuple[Solution, ...]
    sources: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The messages, with `...` for each placeholder."""
        return tuple(PLACEHOLDER.sub("...", each) for each in self.messages)

    def matches(self, text: str) -> bool:
        """Return whether a text contains one of the messages, or is a part of one."""
        part = " ".join(text.lower().split())
        is_part = len(part) >= MIN_PART and any(part in each.lower() for each in self.messages)
        return is_part or any(_pattern(each).search(part) for each in self.messages)


class _ToolErrors(Record):
    errors: tuple[ToolError, ...]


@cache
def tool_errors() -> tuple[ToolError, ...]:
    """Return all errors in the order of the page."""
    from opshift.registry.yaml_files import load_yaml

    return from_file_content(_ToolErrors, load_yaml(TOOL_ERRORS), TOOL_ERRORS).errors


@cache
def _pattern(message: str) -> re.Pattern[str]:
    """Return a pattern of a message in lower case, for text with single spaces.

    It omits placeholders at both ends, which match any text.
    """
    parts = PLACEHOLDER.split(message.lower())
    # drops the empty parts outside of placeholders at both ends
    return re.compile(f".{{0,{MAX_PLACEHOLDER}}}?".join(map(re.escape, filter(None, parts))))

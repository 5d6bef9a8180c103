"""JSON text in which infinity is the number `1e999`.

JSON has no infinity, but parsers read a number that exceeds the range of a double as infinity.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

# Placeholders from a private-use area of Unicode, which are replaced in the finished text.
_PLACEHOLDERS: Final = {math.inf: "\ue000inf", -math.inf: "\ue000-inf"}
_NUMBERS: Final = {math.inf: "1e999", -math.inf: "-1e999"}


def json_text(data: Any, indent: int | None = None) -> str:
    """Return plain data as strict JSON in ASCII; compact if there is no indent."""
    separators = (",", ":") if indent is None else None
    text = json.dumps(_with_placeholders(data), indent=indent, separators=separators, allow_nan=False)
    for value, placeholder in _PLACEHOLDERS.items():
        text = text.replace(json.dumps(placeholder), _NUMBERS[value])
    return text


def _with_placeholders(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _with_placeholders(each) for key, each in data.items()}
    if isinstance(data, list):
        return [_with_placeholders(each) for each in data]
    return _PLACEHOLDERS.get(data, data) if isinstance(data, float) else data

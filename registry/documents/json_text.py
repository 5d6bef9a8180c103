"""JSON that has numbers for what is infinite: `1e999`, which every reader takes for infinity."""

from __future__ import annotations

import json
import math
from typing import Any, Final

_MARKS: Final = {math.inf: "\ue000inf", -math.inf: "\ue000-inf"}
_NUMBERS: Final = {math.inf: "1e999", -math.inf: "-1e999"}


def json_text(data: Any, indent: int | None = None) -> str:
    """Plain data as strict JSON, in ASCII; compact without an indent."""
    separators = (",", ":") if indent is None else None
    text = json.dumps(_marked(data), indent=indent, separators=separators, allow_nan=False)
    for value, mark in _MARKS.items():
        text = text.replace(json.dumps(mark), _NUMBERS[value])
    return text


def _marked(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _marked(each) for key, each in data.items()}
    if isinstance(data, list):
        return [_marked(each) for each in data]
    return _MARKS.get(data, data) if isinstance(data, float) else data

"""Plain data: the values in JSON and YAML files, and the limits of such files.

The limits are far above the size of any operator definition. They keep a hostile file from exhausting memory
or the stack.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import NoReturn, TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"

MAX_FILE_BYTES = 1 << 26
"""Maximum size of a file in bytes."""

MAX_DEPTH = 64
"""Maximum nesting of lists and mappings."""

MAX_ITEMS = 2_000_000
"""Maximum number of values, counting every repetition by a YAML alias."""

MIN_INTEGER, MAX_INTEGER = -(2**63), 2**64 - 1
"""Range of integers: those of ONNX's types int64 and uint64."""


class PlainDataError(ValueError):
    """A text is not JSON, or data exceeds a limit of this module or cannot be written as JSON."""


def parse_json(content: bytes) -> Json:
    """Return the data in a JSON file.

    Raises:
        PlainDataError: the file is not JSON, repeats a key or exceeds a limit.
    """
    if len(content) > MAX_FILE_BYTES:
        raise PlainDataError(f"has more than {MAX_FILE_BYTES:,} bytes")
    try:
        data: Json = json.loads(
            content,
            parse_int=parse_integer,
            parse_constant=_refuse_nan_or_infinity,
            object_pairs_hook=_mapping_of_pairs,
        )
    except RecursionError as error:
        raise _too_deep() from error
    except PlainDataError:
        raise
    except ValueError as error:
        raise PlainDataError(f"is not JSON: {error}") from error
    _require_limits(data)
    return data


def parse_integer(text: str) -> int:
    """Return the integer in a text; raise PlainDataError if it is out of the range of int64 and uint64."""
    # Check the length first: converting a long text to an integer takes quadratic time.
    number = int(text) if len(text) <= len(str(MIN_INTEGER)) else MAX_INTEGER + 1
    if not MIN_INTEGER <= number <= MAX_INTEGER:
        raise PlainDataError(f"contains the integer {text[:30]}, which is out of the range of 64 bits")
    return number


def _refuse_nan_or_infinity(text: str) -> NoReturn:
    raise PlainDataError(f"is not JSON: {text} is not a number")


def _mapping_of_pairs(pairs: Sequence[tuple[str, Json]]) -> dict[str, Json]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        seen: set[str] = set()
        key = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise PlainDataError(f"key {key!r} is repeated")
    return mapping


def _too_deep() -> PlainDataError:
    return PlainDataError(f"is nested more than {MAX_DEPTH} levels deep")


def _require_limits(data: Json) -> None:
    """Raise PlainDataError for data that is nested too deeply or contains a string with a lone surrogate."""
    level: Sequence[Json] = [data]
    for depth in range(MAX_DEPTH + 1):
        following: list[Json] = []
        for each in level:
            if isinstance(each, str):
                require_text(each)
            elif isinstance(each, Mapping | Sequence) and depth == MAX_DEPTH:
                raise _too_deep()
            elif isinstance(each, Mapping):
                following += each
                following += each.values()
            elif isinstance(each, Sequence):
                following += each
        level = following


def require_text(text: str) -> None:
    """Raise PlainDataError for a lone surrogate, half of a pair: UTF-8 cannot encode it."""
    if not text.isascii() and any("\ud800" <= each <= "\udfff" for each in text):
        raise PlainDataError(f"contains {text[:30]!r}, which is not valid Unicode")


def json_values(data: Mapping[str, object]) -> dict[str, Json]:
    """Return data as JSON values; infinity, NaN and values of other classes become text."""
    return {str(key): _json_value(value) for key, value in data.items()}


def _json_value(value: object) -> Json:
    if type(value) is str:  # most values
        return value
    if isinstance(value, Mapping):
        return json_values(value)
    if isinstance(value, list | tuple):
        return [_json_value(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, str | int | float | None) else str(value)


INFINITY_OR_TEXT = re.compile(r'"(?:[^"\\]|\\.)*+"|Infinity|NaN')
"""Strings, `Infinity` and `NaN` in JSON that Python writes; strings match so that their text is skipped."""


def json_text(data: Json, indent: int | None = None) -> str:
    """Return plain data as strict JSON in ASCII, with 1e999 for infinity; without `indent`, it is compact.

    Raises:
        PlainDataError: the data contains NaN, which JSON cannot express.
    """
    separators = (",", ":") if indent is None else None
    text = json.dumps(data, indent=indent, separators=separators)
    return INFINITY_OR_TEXT.sub(_strict_token, text)


def _strict_token(match: re.Match[str]) -> str:
    if match[0] == "NaN":
        raise PlainDataError("contains NaN, which JSON cannot express")
    return "1e999" if match[0] == "Infinity" else match[0]

"""Lint rules for the format of files, and the conversion of pydantic's errors to problems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from reprlib import repr as short_repr
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from opshift.registry.lint.rule_table import Keys, LintProblem, nearest, requirement
from opshift.registry.record import (
    NOUNS,
    UNKNOWN_KEY,
    allowed_values,
    has_key,
    path_of_error,
    text_of_errors,
)
from opshift.registry.steps import VERBS, parse_action

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

requirement("yaml.syntax", "A file is one document of valid YAML with plain data.", "correct the YAML here")
requirement("yaml.key", "Keys are strings.", "put the key in quotes")
requirement("yaml.repeated-key", "A mapping has each key once.", "remove or rename one of the keys")
requirement(
    "yaml.ambiguous",
    "Words such as yes, off and True, which some readers take for booleans, are in quotes.",
    "put the word in quotes, or write true, false or null",
)
requirement("yaml.limits", "Files are limited in their nesting and number of values.", "split the file")
requirement("file.content", "Files can be read, and define each operator once.", "correct the file")
requirement(
    "file.ignored", "All YAML files of a tree are read.", "rename the file to `<domain>/<operator>.yaml`"
)
requirement(
    "file.identity", "The path of a file is `<domain>/<name>.yaml`.", "rename the file, or correct the key"
)
requirement("format.unknown-key", "A mapping has only keys of the format.", "remove the key")
requirement("format.missing-key", "Required keys are present.", "add the key")
requirement("format.choice", "A key with a fixed set of values has one of them.", "correct the value")
requirement("format.type", "A value has the type that the format requires.", "correct the value")
requirement("format.value", "A value is in the range that the format requires.", "correct the value")


def format_problems(
    error: ValidationError, data: object, prefix: Keys = ()
) -> Iterator[tuple[str, LintProblem]]:
    """Yield a rule id and a problem for each value that pydantic refuses; `prefix` is the path to `data`.

    For a union, pydantic reports an error for every alternative. Only the errors with the longest path are
    kept, because they belong to the alternative that matches best.
    """
    left = [(path_of_error(each, data), each) for each in error.errors()]
    reported: list[Keys] = []
    while left:
        verbs = _list_of_verbs(left[0][0], data)
        top = verbs or left[0][0]
        same = [each for each in left if each[0][: len(top)] == top]
        left = [each for each in left if each[0][: len(top)] != top]
        of_verbs = [*_verb_problems(_value_at(data, verbs), (*prefix, *verbs))] if verbs else []
        if of_verbs:
            reported.append(verbs)
            yield from of_verbs
            continue
        depth = max(len(keys) for keys, _ in same)
        for keys in dict.fromkeys(keys for keys, _ in same if len(keys) == depth):
            # skip parents of reported values: pydantic also reports lists with invalid items as too short
            if not any(each[: len(keys)] == keys for each in reported):
                reported.append(keys)
                yield _problem((*prefix, *keys), [each for place, each in same if place == keys])


def _problem(keys: Keys, errors: Sequence[ErrorDetails]) -> tuple[str, LintProblem]:
    """Return the rule id and the problem of one value, from the errors of all alternatives of its union."""
    first, text = errors[0], text_of_errors(errors)
    kind, value = first["type"], first["input"]
    if kind in UNKNOWN_KEY:
        return "format.unknown-key", LintProblem(text, keys, nearest(keys[-1], known_keys(keys[:-1])))
    if kind == "missing":
        return "format.missing-key", LintProblem(text, keys)
    choices = allowed_values(errors)
    if choices and isinstance(value, str):
        return "format.choice", LintProblem(text, keys, nearest(value, choices))
    is_type = choices or any(each["type"] in NOUNS for each in errors)
    return "format.type" if is_type else "format.value", LintProblem(text, keys)


def _list_of_verbs(keys: Keys, data: object) -> Keys:
    """Return the path to the list of verbs that contains the value at `keys`; `()` outside such lists."""
    ends = [end for end in range(1, len(keys) + 1) if keys[end - 1] in ("up", "down", "before")]
    found = (keys[:end] for end in ends if isinstance(_value_at(data, keys[:end]), list))
    return next(found, ())


def _value_at(data: Any, keys: Keys) -> Any:
    for key in keys:
        if not has_key(data, key):
            return None
        data = data[key]
    return data


def _verb_problems(answers: Any, keys: Keys) -> Iterator[tuple[str, LintProblem]]:
    """Yield the problems of each verb in a list: pydantic reports only one error for the whole list."""
    for position, item in enumerate(answers):
        try:
            parse_action([item])
        except ValidationError as error:
            yield from _problems_of_verb(item, (*keys, position), error)
        except ValueError as error:
            names = item if isinstance(item, dict) and len(item) == 1 else ()
            remedy = nearest(next(iter(names), ""), VERBS)
            yield "format.choice", LintProblem(str(error).partition(";")[0], (*keys, position), remedy)


def _problems_of_verb(
    item: dict[str, Any], keys: Keys, error: ValidationError
) -> Iterator[tuple[str, LintProblem]]:
    ((name, arguments),) = item.items()
    prefix = (*keys, name)
    if not isinstance(arguments, dict):  # shorthand: the value of one field in place of a mapping
        missing = [str(each["loc"][-1]) for each in error.errors() if each["type"] == "missing"]
        known = ", ".join(known_keys(prefix))
        text = f"expected a mapping with {known}" if missing else "expected a string"
        yield "format.type", LintProblem(f"{text}, got {short_repr(arguments)}", prefix)
        return
    yield from format_problems(error, arguments, prefix)


def known_keys(keys: Keys) -> list[str]:
    """Return the keys that the format allows in the mapping at `keys`."""
    # imported here: few files have unknown keys
    from opshift.registry.editor_schema import operator_file_schema

    schema = operator_file_schema()
    found = _alternatives(schema, schema["$defs"])
    for key in keys:
        children = []
        for each in found:
            if isinstance(key, int):
                child = each.get("items")
            else:
                child = each.get("properties", {}).get(key) or each.get("additionalProperties")
            if child:
                children += _alternatives(child, schema["$defs"])
        found = children
    return list(dict.fromkeys(name for each in found for name in each.get("properties", ())))


def _alternatives(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the schemas of a union, with references resolved."""
    if "$ref" in schema:
        return _alternatives(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    return (
        [each for part in schema["anyOf"] for each in _alternatives(part, definitions)]
        if "anyOf" in schema
        else [schema]
    )

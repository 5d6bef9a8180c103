"""Edit the text of a YAML file: a dump of the parsed data would lose comments and layout."""

import yaml

from opshift.registry.errors import DefinitionError


def set_value(text: str, key: str, value: str) -> str:
    """Return the text of a YAML mapping with `value` at `key`, which is added if it is missing.

    Raises:
        DefinitionError: the text is not YAML.
    """
    node = _value_of(text, key)
    if node is None:
        return f"{_with_final_newline(text)}{key}: {value}{_newline_of(text)}"
    return text[: node.start_mark.index] + value + text[node.end_mark.index :]


def append_item(text: str, key: str, item: str) -> str:
    """Return the text of a YAML mapping with `item` appended to the list at `key`, see `set_value`.

    Raises:
        DefinitionError: the text is not YAML, or the value at `key` is not a list.
    """
    listed, newline = _value_of(text, key), _newline_of(text)
    if listed is None:
        return f"{_with_final_newline(text)}{key}:{newline}- {item}{newline}"
    if not isinstance(listed, yaml.SequenceNode):
        raise DefinitionError(f"{key!r} is not a list", remedy="correct it")
    if not listed.value:
        head = text[: listed.start_mark.index].rstrip()
        return f"{head}{newline}- {item}{text[listed.end_mark.index :]}"
    if listed.flow_style:
        position = listed.value[-1].end_mark.index
        return f"{text[:position]}, {item}{text[position:]}"
    position = _end_of_lines(text, listed)
    indentation = " " * listed.start_mark.column
    return f"{_with_final_newline(text[:position])}{indentation}- {item}{newline}{text[position:]}"


def _value_of(text: str, key: str) -> yaml.Node | None:
    try:
        # Use the parser in Python: positions of libyaml do not count a byte order mark.
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise DefinitionError(f"the text is not YAML: {error}", remedy="correct it") from error
    pairs = root.value if isinstance(root, yaml.MappingNode) else ()
    return next((value for name, value in pairs if name.value == key), None)


def _end_of_lines(text: str, block: yaml.Node) -> int:
    """Return the index after the last line of a block list or mapping, without comments after it."""
    last = block
    # Use the last scalar: the end mark of a block list or mapping is after later empty lines and comments.
    while isinstance(last, yaml.CollectionNode) and last.value and not last.flow_style:
        last = last.value[-1][1] if isinstance(last, yaml.MappingNode) else last.value[-1]
    mark = last.end_mark
    # A block scalar ends after its last line break, other values before the line break.
    return mark.index if mark.column == 0 else text.find("\n", mark.index) + 1 or len(text)


def _with_final_newline(text: str) -> str:
    """Return lines of a file with a line break after the last line."""
    return text if not text or text.endswith("\n") else text + _newline_of(text)


def _newline_of(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"

"""YAML of unknown origin: limits, and one kind of error with a line."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from opshift.registry import yaml_files
from opshift.registry.errors import DefinitionError
from opshift.registry.yaml_files import load_yaml, place_of

LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 10)
)

INVALID = {
    "deep list": ("[" * 100_000, 1, "levels of nesting"),
    "deep mapping": ("{a: " * 100_000, 1, "levels of nesting"),
    "deep block list": ("- " * 1_000 + "x", 1, "levels of nesting"),
    "deep keys": ("? " * 1_000 + "x", 1, "levels of nesting"),
    "deep indentation": ("".join(f"{' ' * i}k{i}:\n" for i in range(3000)), 65, "levels of nesting"),
    "deep and complete": (f"a: {'[' * 65}{']' * 65}", 1, "levels of nesting"),
    "repeated aliases": (LAUGHS, 7, "values"),
    "recursive alias": ("a: &a [*a]", 1, "undefined alias"),
    "empty int": ("a: !!int ''", 1, "'' is not of type int"),
    "empty float": ("\na: !!float ''", 2, "'' is not of type float"),
    "bool": ("a: !!bool x", 1, "'x' is not of type bool"),
    "old bool": ("a: !!bool yes", 1, "'yes' is not of type bool"),
    "null": ("a: !!null x", 1, "'x' is not of type null"),
    "timestamp": ("a: !!timestamp x", 1, "unknown tag"),
    "date": ("a: !!timestamp 2001-01-01", 1, "unknown tag"),
    "binary": ("a: !!binary =", 1, "unknown tag"),
    "set": ("a: !!set {b}", 1, "unknown tag"),
    "pairs": ("a: !!pairs 3", 1, "unknown tag"),
    "merge": ("a: {!!merge x: {b: 1}}", 1, "unknown tag"),
    "own tag": ("a: !own x", 1, "unknown tag"),
    "Python object": ("a: !!python/object/apply:os.system [true]", 1, "unknown tag"),
    "scalar as list": ("a: !!seq x", 1, "unknown tag"),
    "list as text": ("a: !!str [x]", 1, "unknown tag"),
    "list as int": ("a: !!int [x]", 1, "unknown tag"),
    "large integer": ("a: 1000000000000000000000000000000", 1, "out of the range of 64 bits"),
    "long integer": ("a: " + "9" * 100_000, 1, "out of the range of 64 bits"),
    "surrogate": (r'a: "\ud800"', 1, "invalid Unicode"),
    "two documents": ("a: 1\n---\nb: 2", 2, "but found another document"),
    **{
        f"word {word}": (f"a:\n- {word}", 2, "yaml.ambiguous: .* is a boolean or null for some readers")
        for word in ("yes", "No", "ON", "off", "True", "FALSE", "NULL")
    },
    "undefined alias": ("a: *b", 1, "undefined alias"),
    "control character": ("a: \x07", 1, "is not YAML"),
}


@pytest.mark.parametrize(("text", "line", "reason"), INVALID.values(), ids=INVALID)
def test_refuses_invalid_yaml(tmp_path: Path, text: str, line: int, reason: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DefinitionError, match=reason) as caught:
        load_yaml(path)
    assert (caught.value.place.file, caught.value.place.line) == (str(path), line)


@pytest.mark.parametrize("name", [name for name in INVALID if name.startswith("deep")])
def test_reports_deep_nesting_alike_with_every_libyaml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The parser in Python has no limit of nesting, like libyaml before 0.2.6."""
    path = tmp_path / "a.yaml"
    path.write_text(INVALID[name][0][:20_000], encoding="utf-8")
    places = []
    for parser in (getattr(yaml, "CSafeLoader", yaml.SafeLoader), yaml.SafeLoader):
        monkeypatch.setattr(yaml_files, "_Parser", parser)
        with pytest.raises(DefinitionError) as caught:
            load_yaml(path)
        places.append((str(caught.value), caught.value.place))
    assert places[0] == places[1]
    assert "yaml.limits" in places[0][0]


def test_lines_are_searched_within_limits(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("a: " + "[" * 100_000)
    with pytest.raises(DefinitionError, match="levels of nesting"):
        place_of(path, ("a", 0))


def test_refuses_large_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("a: 12")
    monkeypatch.setattr(yaml_files, "MAX_FILE_BYTES", 3)
    with pytest.raises(DefinitionError, match="more than 3 bytes"):
        load_yaml(path)


def test_reads_plain_data(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("a: &x [1, -2.5, .inf, true, null, ~, text, 'off', 013]\nb: *x\nc: {d: }\ne: !!float 1\n")
    values = [1, -2.5, float("inf"), True, None, None, "text", "off", "013"]
    assert load_yaml(path) == {"a": values, "b": values, "c": {"d": None}, "e": 1.0}

"""Tables of rules that modules register."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from opshift.model.rule_table import DuplicateRule, RuleTable, describe, import_modules

MODULE = """\
from demo_rules import TABLE

def check(value: int) -> list[str]:
    return []

TABLE.add({name!r}, {name!r}, check)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Create a package with a table, and rules `b` in a module and `a` in a subpackage."""
    folder = tmp_path / "demo_rules"
    (folder / "nested").mkdir(parents=True)
    table = 'from opshift.model.rule_table import RuleTable\n\nTABLE = RuleTable("demo_rules")\n'
    (folder / "__init__.py").write_text(table)
    (folder / "nested" / "__init__.py").write_text("")
    (folder / "one.py").write_text(MODULE.format(name="b"))
    (folder / "nested" / "two.py").write_text(MODULE.format(name="a"))
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "demo_rules"]:
        del sys.modules[name]


def test_loads_the_rules_of_all_modules_sorted(package: Path) -> None:
    import_modules("demo_rules")
    table: RuleTable[str] = sys.modules["demo_rules"].TABLE
    assert table.registered == {"a": "a", "b": "b"}
    assert list(table.load()) == ["a", "b"]


def test_refuses_a_duplicate_name(package: Path) -> None:
    (package / "three.py").write_text(MODULE.format(name="a"))
    with pytest.raises(DuplicateRule, match=r"'a' is defined by both demo_rules\.\S+ and demo_rules\.\S+"):
        import_modules("demo_rules")


def _check(value: int | str) -> list[str]:
    """Values are equal.

    Otherwise it
    raises an error.
    """
    return [str(value)]


def _undocumented(value: int) -> list[str]:
    return [str(value)]


def test_describes_a_rule_by_its_function() -> None:
    assert describe(_check) == (
        "Values are equal.",
        "Otherwise it raises an error.",
        (int, str),
    )
    assert describe(_undocumented) == ("", "", (int,))

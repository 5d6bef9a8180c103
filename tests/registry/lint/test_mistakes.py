"""The loader, `lint_tree` and the JSON Schema find typical mistakes in definitions."""

from pathlib import Path

import pytest
from support.mistakes import LINT_ONLY, MISTAKES, OTHER_RULES, VALID, Mistake

from opshift.registry.errors import DefinitionFinding, InvalidDefinition
from opshift.registry.lint.rule_table import rule_table
from opshift.registry.lint_tree import lint_tree
from opshift.registry.registry import load_registry

pytestmark = pytest.mark.every_case


def _tree(folder: Path, text: str, path: str = "com.acme/Blur.yaml") -> Path:
    file = folder / path
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    (folder / "types.yaml").write_text("floats: [tensor(float), tensor(double)]\n")
    return file


def _matches(finding: DefinitionFinding, mistake: Mistake, file: Path) -> bool:
    place = finding.place.file == str(file) and finding.place.line == mistake.line
    texts = mistake.reason in finding.reason and mistake.remedy in finding.remedy
    return finding.rule == mistake.rule and place and texts


def test_accepts_the_valid_definition(tmp_path: Path) -> None:
    _tree(tmp_path, VALID)
    assert lint_tree(tmp_path) == ()
    assert load_registry([tmp_path]).get_schema("Blur", 2, "com.acme").since_version == 2


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_lint_finds_a_mistake(tmp_path: Path, mistake: Mistake) -> None:
    file = _tree(tmp_path, mistake.text, mistake.path)
    findings = lint_tree(tmp_path)
    assert [each for each in findings if _matches(each, mistake, file)], findings
    assert all(each.remedy and each.reason == " ".join(each.reason.split()) for each in findings)


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_the_loader_refuses_a_mistake(tmp_path: Path, mistake: Mistake) -> None:
    file = _tree(tmp_path, mistake.text, mistake.path)
    registry = load_registry([tmp_path])
    if mistake.rule in LINT_ONLY:
        assert registry.operator(file.stem, file.parent.name)
        return
    with pytest.raises(InvalidDefinition) as caught:
        registry.operator(file.stem, file.parent.name)
    found = [each for each in caught.value.findings if _matches(each, mistake, file)]
    assert found, caught.value.findings
    first = caught.value.findings[0]
    assert (caught.value.place, caught.value.remedy) == (first.place, first.remedy)
    assert caught.value.reason.startswith(f"{first.rule}: {first.reason}")


def test_each_rule_has_a_mistake() -> None:
    assert {each.rule for each in MISTAKES.values()} | OTHER_RULES == set(rule_table())

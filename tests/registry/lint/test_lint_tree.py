"""Findings in several files of a tree of definitions, and of operators that no file defines."""

from pathlib import Path

import pytest
from support.mistakes import HERE, MISTAKES, VALID

from opshift.adapters.core.adapter_table import adapter_table
from opshift.opsets import OPSETS
from opshift.registry.errors import DefinitionFinding, InvalidDefinition
from opshift.registry.lint_tree import lint_tree
from opshift.registry.models import Operator, OperatorVersion, Parameter
from opshift.registry.registry import Registry
from opshift.registry.yaml_files import MAX_FINDINGS


def _tree(folder: Path, **files: str) -> Path:
    (folder / "com.acme").mkdir(parents=True)
    (folder / "types.yaml").write_text("floats: [tensor(float), tensor(double)]\n")
    for name, text in files.items():
        (folder / "com.acme" / f"{name}.yaml").write_text(text.replace("name: Blur", f"name: {name}"))
    return folder


def _rules(folder: Path) -> list[str]:
    return [each.rule for each in lint_tree(folder)]


def test_reports_all_mistakes_of_all_files(tmp_path: Path) -> None:
    names = ("misspelt status", "unknown type", "default outside of the values", "unused type variable")
    text = VALID
    for each in (MISTAKES[name] for name in names):
        text = text.replace(each.old, each.new, 1)
    other = MISTAKES["missing step"].text
    found = lint_tree(_tree(tmp_path, Blur=text.replace(HERE, ""), Sharpen=other.replace(HERE, "")))
    rules = [(Path(each.place.file).stem, each.rule) for each in found]
    assert ("Sharpen", "step.missing") in rules
    assert ("Blur", "format.choice") in rules
    assert ("Blur", "type.unknown") in rules
    assert found == tuple(sorted(found, key=lambda each: (each.place.file, each.place.line)))


def test_versions_with_a_valid_format_are_checked_next_to_others(tmp_path: Path) -> None:
    later = VALID.index("- since_version: 2")
    first, second = VALID[:later], VALID[later:]
    text = first.replace("STABLE", "STABEL") + second.replace("{name: Y, type: T}", "{name: Y, type: T1}")
    assert set(_rules(_tree(tmp_path, Blur=text))) == {"format.choice", "type.undeclared"}


def test_limits_the_findings_of_a_file(tmp_path: Path) -> None:
    attributes = "".join(f"    a-{number}: {{type: INT}}\n" for number in range(2 * MAX_FINDINGS))
    text = VALID.replace("  attributes:\n", f"  attributes:\n{attributes}", 1)
    assert len(lint_tree(_tree(tmp_path, Blur=text))) == MAX_FINDINGS


def test_reports_all_ambiguous_words(tmp_path: Path) -> None:
    text = VALID.replace("values: [soft, hard]", "values: [yes, no]").replace("default: soft", "default: on")
    findings = lint_tree(_tree(tmp_path, Blur=text))
    words = [each.reason.partition(" ")[0] for each in findings]
    assert (words, {each.rule for each in findings}) == (["on", "yes", "no", "on"], {"yaml.ambiguous"})


def test_names_that_differ_in_case_only(tmp_path: Path) -> None:
    folder = _tree(tmp_path, Blur=VALID, BLUR=VALID)
    if len(list((folder / "com.acme").iterdir())) == 2:
        assert _rules(folder) == ["name.case", "name.case"]


def test_files_that_are_not_read(tmp_path: Path) -> None:
    folder = _tree(tmp_path, Blur=VALID)
    (folder / "com.acme" / "Sharpen.yml").write_text(VALID)
    (folder / "Sharpen.yaml").write_text(VALID)
    assert _rules(folder) == ["file.ignored", "file.ignored"]


def test_folder_without_definitions(tmp_path: Path) -> None:
    (finding,) = lint_tree(tmp_path)
    assert (finding.rule, finding.place.file) == ("file.content", str(tmp_path))


def test_invalid_set_of_types_is_reported_once(tmp_path: Path) -> None:
    folder = _tree(tmp_path, Blur=VALID, Sharpen=VALID)
    (folder / "types.yaml").write_text("floats: [tensor(float), tensor(duoble)]\nmore: [more]\n")
    (finding,) = lint_tree(folder)
    assert (finding.rule, finding.place.line) == ("type.unknown", 1)
    assert "tensor(double)" in finding.remedy
    (folder / "types.yaml").write_text("floats: [floats]\n")
    assert _rules(folder) == ["type.set"]


def test_adapter_that_is_not_declared(tmp_path: Path) -> None:
    folder = _tree(tmp_path, Blur=VALID)
    (finding,) = lint_tree(folder, [("com.acme", "Blur", 1, 2)])
    assert (finding.rule, finding.reason) == (
        "step.undeclared",
        "an adapter from 1 to 2 is registered, but not declared",
    )
    declared = VALID.replace("up: compatible", "up: adapter")
    assert lint_tree(_tree(tmp_path / "b", Blur=declared), [("com.acme", "Blur", 1, 2)]) == ()


def test_registry_refuses_inconsistent_operator() -> None:
    parameter = Parameter(name="X", type="U")
    version = OperatorVersion(domain="com.acme", name="Blur", since_version=1, inputs=(parameter,))
    operator = Operator(domain="com.acme", name="Blur", versions=(version, version))
    with pytest.raises(InvalidDefinition) as caught:
        Registry(()).with_operator(operator)
    found: tuple[DefinitionFinding, ...] = caught.value.findings
    assert {each.rule for each in found} == {"type.undeclared", "version.order"}
    assert str(caught.value.place) == "com.acme.Blur"


def test_accepts_built_in_definitions() -> None:
    assert lint_tree(OPSETS, adapter_table()) == ()

"""Causes of refusals: permanent codes, and no refusal without one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import get_args, get_type_hints

import pytest

from opshift.converter.refusals import Refusal
from opshift.model.errors import CannotConvert
from opshift.registry.errors import DefinitionError, ResolveError
from opshift.registry.explanations import PRIVATE_CAUSE, refusal_cause, refusal_causes
from opshift.registry.steps import Refuse

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("adapters", "converter", "registry", "src")
CODES_WITH_SUBJECT = {"type.unsupported", "type.narrow-integer", "deviation.not-allowed"}
PLACEHOLDERS = {"count", "subject", "target"}


def calls_of(name: str) -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls of a class in the package, with their places."""
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text("utf-8")
            for node in ast.walk(ast.parse(text)) if f"{name}(" in text else ():
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", node


def subclasses_of(kind: type[object]) -> Iterator[type[object]]:
    yield kind
    for each in kind.__subclasses__():
        yield from subclasses_of(each)


def test_codes_are_permanent() -> None:
    recorded = (ROOT / "tests/golden/refusal-codes.txt").read_text("utf-8").split()
    codes = list(refusal_causes())
    assert set(recorded) <= set(codes), "codes never change or disappear: users refer to them"
    assert codes == recorded, "append the new codes to tests/golden/refusal-codes.txt"


@pytest.mark.parametrize("content", ["- title: a", "3", "node.invalid: [a]", ""])
def test_refuses_an_invalid_file(content: str, tmp_path: Path) -> None:
    (tmp_path / "refusals.yaml").write_text(content, "utf-8")
    with pytest.raises(DefinitionError):
        refusal_causes(tmp_path / "refusals.yaml")


@pytest.mark.parametrize("code", refusal_causes())
def test_cause_is_complete(code: str) -> None:
    cause = refusal_cause(code)
    used = {name for _, name, _, _ in Formatter().parse(cause.summary) if name is not None}
    assert "count" in used <= PLACEHOLDERS
    assert all((cause.title, cause.cause, cause.example, cause.remedy))
    assert not cause.title.endswith(".")
    assert not cause.remedy.endswith(".")
    assert cause.cause.endswith(".")


def test_every_refusal_of_a_node_has_a_documented_code() -> None:
    used = set()
    for place, call in calls_of("CannotConvert"):
        assert len(call.args) > 1, f"{place}: no code; see docs/refusals.md"
        code = call.args[1]
        if isinstance(code, ast.Constant):
            assert code.value in refusal_causes(), f"{place}: unknown code {code.value!r}"
            used.add(code.value)
        if isinstance(code, ast.Constant) and code.value in CODES_WITH_SUBJECT:
            assert any(each.arg == "subject" for each in call.keywords), f"{place}: no subject"
    assert len(used) > 20


def test_every_code_is_used() -> None:
    texts = [path.read_text("utf-8") for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    assert [code for code in refusal_causes() if not any(f'"{code}"' in text for text in texts)] == []


def test_declared_refusals_have_documented_codes() -> None:
    assert set(get_args(get_type_hints(Refuse)["code"])) <= refusal_causes().keys()


@pytest.mark.parametrize("error", [*subclasses_of(ResolveError)], ids=lambda each: each.__name__)
def test_resolve_errors_have_documented_codes(error: type[ResolveError]) -> None:
    assert error.code in refusal_causes()


def test_refusal_needs_a_code() -> None:
    with pytest.raises(TypeError, match="code"):
        Refusal("graph, node 'a'", "ai.onnx.Relu:6", "a reason", "")  # type: ignore[call-arg]


def test_private_adapters_may_omit_the_code_or_have_another() -> None:
    assert CannotConvert("mode 3 has no equivalent").code == PRIVATE_CAUSE
    assert refusal_cause("com.acme.mode") == refusal_cause(PRIVATE_CAUSE)

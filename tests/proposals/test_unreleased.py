"""Updates of operators and versions that are not released."""

from __future__ import annotations

import numpy as np
import pytest
from support.execution import run
from support.workbench import (
    ADAPTERS,
    EXAMPLES,
    FLOAT,
    Workbench,
    X,
    accept_cube,
    body,
    node,
    reference_text,
)


def _cosh_adapters(default: float) -> str:
    return f'''{ADAPTERS}@adapter("Cosh", 22, 29)
def up(node: Node, out: Rewriter) -> None:
    """Set the factor."""
    out.replace(node, attributes={{"factor": 1.0}})


@adapter("Cosh", 29, 22)
def down(node: Node, out: Rewriter) -> None:
    """Multiply by the factor."""
    factor = out.constant(node.attribute("factor", {default}), out.element_type(node.inputs[0]))
    out.emit("Cosh", [out.emit("Mul", [node.inputs[0], factor])], node.outputs)
'''


def test_unreleased_update_is_edited_with_its_adapters(bench: Workbench) -> None:
    examples = EXAMPLES + "- {name: factor, inputs: [{values: [1, 2]}], attributes: {factor: 0.5}}\n"
    reference = reference_text("np.cosh(X * X.dtype.type(factor))", "X, *, factor")
    for default in (1.0, 2.0):
        path = bench.start("update", "Cosh")
        definition = {
            "attributes": {"factor": {"type": "FLOAT", "default": default}},
            "step": {"change": "The factor multiplies the input.", "up": "adapter", "down": "adapter"},
            "descriptions": {"attributes": {"factor": "The factor of the input before cosh."}},
            **FLOAT,
        }
        if default == 2.0:
            assert "np.cosh" in (path / "reference.py").read_text()
            assert (path / "adapters.py").read_text() == _cosh_adapters(1.0)
        files = {"reference.py": reference, "examples.yaml": examples, "adapters.py": _cosh_adapters(default)}
        bench.fill(path, definition, files)
    operator = bench.registry.operator("Cosh")
    assert operator is not None
    assert [each.since_version for each in operator.versions] == [9, 22, 29]
    older = bench.convert(node("Cosh", "x"), 29, 22)
    np.testing.assert_allclose(run(older, {"x": X})[0], np.cosh(2 * X), rtol=1e-5)


def test_update_of_unreleased_version_finds_adapters_in_clone(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = reference_text("np.cosh(X * X.dtype.type(factor))", "X, *, factor")
    definition = {
        "attributes": {"factor": {"type": "FLOAT", "default": 1.0}},
        "step": {"change": "The factor multiplies the input.", "up": "adapter", "down": "adapter"},
        "descriptions": {"attributes": {"factor": "The factor of the input before cosh."}},
        **FLOAT,
    }
    examples = EXAMPLES + "- {name: factor, inputs: [{values: [1, 2]}], attributes: {factor: 0.5}}\n"
    files = {"reference.py": reference, "examples.yaml": examples, "adapters.py": _cosh_adapters(1.0)}
    bench.fill(bench.start("update", "Cosh"), definition, files)
    (bench.folder / "adapters" / "ops").mkdir(parents=True)
    (bench.tree / "adapters").rename(bench.folder / "adapters" / "ops" / "math")
    monkeypatch.setattr("opshift.proposals.scaffold.OPSETS", bench.tree)
    path = bench.start("update", "Cosh")
    assert (path / "adapters.py").read_text() == _cosh_adapters(1.0)


@pytest.mark.parametrize("kind", ["deprecation", "removal"])
def test_unreleased_operator_is_neither_deprecated_nor_removed(bench: Workbench, kind: str) -> None:
    accept_cube(bench)
    with pytest.raises(AssertionError, match="is not released") as refused:
        bench.start(kind, "Cube")
    assert "propose an update" in str(refused.value)


def test_update_of_unreleased_operator_edits_it(bench: Workbench) -> None:
    accept_cube(bench)
    path = bench.start("update", "Cube")
    assert "X * X * X" in (path / "reference.py").read_text()
    definition = {"body": body(18, "Mul X X square", "Mul X square Y")}
    edited = bench.fill(path, definition, {"examples.yaml": EXAMPLES})
    operator = bench.registry.operator("Cube")
    assert operator is not None
    assert operator.versions == (edited,)
    assert edited.body is not None
    assert edited.body.nodes[1].inputs == ("X", "square")
